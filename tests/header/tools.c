/* The header for tools includes the other one. */
#include <oriel/tools.h>

oriel_status oriel_test_tools(oriel_speed* speed, oriel_calibration* calibration);
oriel_status oriel_test_tools(oriel_speed* speed, oriel_calibration* calibration) {
  speed->struct_size = sizeof(*speed);
  calibration->struct_size = sizeof(*calibration);
  return ORIEL_OK;
}
