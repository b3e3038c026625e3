/* A library with TLS_KIB of thread-local data. */
static _Thread_local char local_data[TLS_KIB * 1024];

char* touchThreadLocals(void) { return local_data; }
