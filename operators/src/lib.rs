//! Operators on tensors: what they give ([`Operator::infer`]), what that is ([`Operator::evaluate`]), and how a graph of them becomes a program
//! for a device ([`OperatorGraph::lower`]).
//!
//! ```text
//! ONNX, aclnn, Python --> OperatorGraph --lower--> Program: a graph of tasks, each a part of an operator --Stitcher::load_with--> device
//!                             |                                                                              ^
//!                             +--evaluate--> constants of the host                   kernels() --------------+
//! ```
//! ```
//! use pto_operators::{Binary, DType, LowerOptions, Operator, OperatorGraph, Tensor, TensorType};
//!
//! let mut graph = OperatorGraph::new("add_one");
//! let x = graph.add_input("x", TensorType::new(DType::F32, &[2, 3]));
//! let one = graph.add_constant("one", Tensor::scalar(1.0_f32));
//! let y = graph.add_node("add", Operator::Binary(Binary::Add), &[Some(x), Some(one)]).unwrap();
//! graph.add_output("y", y[0]);
//! let lowered = graph.lower(&LowerOptions::default()).unwrap();
//! assert_eq!(lowered.outputs, [("y".to_owned(), TensorType::new(DType::F32, &[2, 3]))]);
//! ```
//! The page `docs/how-to/operators.md` says how an operator is added.

mod dtype;
mod element;
mod error;
mod evaluate;
mod graph;
mod infer;
mod kernel;
mod lower;
mod operator;
mod schema;
mod table;
mod tensor;
mod words;

pub use dtype::DType;
pub use element::{Boolean, Element};
pub use error::{Argument, OperatorError};
pub use graph::{Node, OperatorGraph, Value, ValueId};
pub use infer::{Input, broadcast};
pub use kernel::{
    BlockWork, COST_WORD, LAUNCH_COST_WORD, LAUNCH_HEAD, LOST_FAULT, LaunchStatus,
    LaunchedOperator, MOST_LAUNCH_TENSORS, OperatorKernel, PreparedOperator, Reach, STATUS,
    TaskCost, WorkSplit, blocks_of, kernels, node_titles, run_launch, units_of,
};
pub use lower::{LowerError, LowerOptions, Lowered, Status};
pub use operator::{
    Activation, AspectPolicy, Binary, Coordinates, DepthOrder, Epilogue, Function, Interpolation,
    Nary, NearestMode, Operator, PadMode, Padding, Pooling, Reduction, Resize, ResizeTarget,
    ScatterReduction, Step, Unary, Window,
};
pub use schema::AttributeValue;
pub use table::{AttributeSchema, OperatorSchema};
pub use tensor::{Tensor, TensorType, elements};
