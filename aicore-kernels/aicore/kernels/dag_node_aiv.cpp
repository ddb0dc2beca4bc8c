#include "dag_node.h"

PTO_KERNEL(args) { kernel::dag_node(args); }
