/* Handles are numbers of the library: they are looked up and never followed. */
typedef struct aclTensorDesc aclTensorDesc;
