/* A handle, which is looked up and never followed. */
typedef struct aclopAttr aclopAttr;
