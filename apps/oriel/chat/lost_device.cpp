#include "chat/lost_device.h"

#include <oriel/advanced.h>

#include "failure.h"

namespace cli {

bool deviceLost(const Session& session) {
  const oriel_status status = oriel_session_append(session.get(), nullptr, 0, nullptr, nullptr);
  return status == ORIEL_ERROR_DEVICE || status == ORIEL_ERROR_TIMEOUT;
}

void recover(const Session& session, Model* model) {
  const CancelOnInterrupt cancel(session.get());
  const oriel_status status = session.cancellable([&] { return model->recover(session.get()); });
  try {
    session.check(status);
  } catch (const Failure& failure) {
    throw Failure{failure.exit_code,
                  failure.message.empty()
                      ? failure.message
                      : "the device was lost, and no other can go on: " + failure.message};
  }
}

std::string placeOf(const Model& model) {
  const std::string name = model.text("device");
  return "on " + (name == "CPU" ? "the CPU" : oneLine(name));
}

}  // namespace cli
