// What Swift does: the module is found by its name.
@import COriel;

const char* oriel_test_import(void);
const char* oriel_test_import(void) { return oriel_version(); }
