#include "pictures/picture_file.h"
#include "text_input.h"

namespace cli {

DecodedPicture readPicture(const std::string& path) { return decodePicture(readAll(path), path); }

}  // namespace cli
