/* A plug-in that needs a function which is not there. */
unsigned ptoAclPlugin(void);
int a_function_that_is_not_there(void);

unsigned ptoAclPlugin(void) { return 1; }
int aclInit(const char *path) { return path ? 1 : a_function_that_is_not_there(); }
