#include <oriel/oriel.h>
#include <stdio.h>

int main(void) {
  oriel_plan plan = ORIEL_PLAN_INIT;
  printf("oriel %s\n", oriel_version());
  return oriel_plan_file("missing.gguf", NULL, &plan) == ORIEL_OK ? 1 : 0;
}
