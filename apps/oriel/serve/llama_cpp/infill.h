// Fill-in-the-middle in the form of llama.cpp's server, for editors.
#pragma once

#include "serve/reply_writer.h"

namespace cli {

ReplyRequest readInfillRequest(const Json& body, const ModelFacts& facts);
std::unique_ptr<ReplyWriter> writeInfill(const ReplyContext& context);

}  // namespace cli
