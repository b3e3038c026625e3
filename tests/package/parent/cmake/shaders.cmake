message(FATAL_ERROR "Oriel includes a file of the project that adds it")
