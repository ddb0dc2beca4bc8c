//! What the host sides of the examples share: the [`Example`] trait, parameters, tensors, random inputs, the
//! comparison with a reference, and the table [`EXAMPLES`].
//!
//! ```text
//! Params + Inputs --Example::prepare--> Prepared --reset--> (a run) --verify--> Verdict
//!   (params.rs)   (tensor.rs)           (job.rs)                                (check.rs)
//! ```

pub mod check;
pub mod dtype;
pub mod error;
pub mod job;
pub mod member;
pub mod names;
pub mod needs;
#[cfg(feature = "npy")]
pub mod npy;
pub mod parallel;
pub mod params;
pub mod program;
pub mod random;
pub mod rounding;
pub mod run_mode;
pub mod tensor;

use std::sync::Arc;

use pto_host::group::{Group, GroupError, GroupOptions, Transport};
use pto_host::virtual_time::group::{NetFaults, NetworkProfile};
use pto_host::{Device, DeviceOptions};

pub use check::{ElementPosition, Nans, Verdict};
pub use dtype::{DType, ElementVec};
pub use error::Error;
pub use job::{GraphSize, Prepared};
pub use member::GroupRank;
pub use needs::{Needs, Together};
pub use params::{ParamSpec, Params, f32_of};
pub use program::Program;
pub use run_mode::RunMode;
pub use tensor::{Inputs, NotFinite, Tensor, TensorSpec};

/// Opens the simulator `a2a3sim` with the programs of all examples in its firmware.
///
/// The firmware is generic over its programs: called from here, `Device::open_sim` is compiled once, in this crate, and
/// not again in each binary that opens such a device.
///
/// # Errors
/// Those of [`Device::open_sim`].
pub fn open_sim(options: DeviceOptions) -> Result<Device, pto_host::Error> {
    Device::open_sim(options, crate::ExampleBuilders)
}

/// Opens a group of devices of this process, as [`open_sim`] does each of them.
///
/// # Errors
/// Those of [`Group::open_local`].
pub fn open_group(size: u32, options: &GroupOptions) -> Result<Group, GroupError> {
    Group::open_local(size, options, crate::ExampleBuilders)
}

/// Opens a group of devices in virtual time, with this network between them.
///
/// # Errors
/// Those of [`Group::open_virtual`].
pub fn open_virtual_group(
    size: u32,
    options: &GroupOptions,
    network: NetworkProfile,
) -> Result<Group, GroupError> {
    Group::open_virtual(size, options, (network, NetFaults::default()), crate::ExampleBuilders)
}

/// Opens the device of this process in a group whose other devices are elsewhere.
///
/// # Errors
/// Those of [`Group::join`].
pub fn join_group(
    transport: Arc<dyn Transport>,
    options: &GroupOptions,
) -> Result<Group, GroupError> {
    Group::join(transport, options, crate::ExampleBuilders)
}

/// Parameters as a user gives them: names and values.
pub type Given<'a> = &'a [(&'a str, &'a str)];

/// Parameters of an example at sizes for tests; the others have their defaults.
#[derive(Clone, Copy, Debug)]
pub struct TestSizes {
    /// Every part of the example: tails, several blocks, contexts of unequal length.
    pub whole: Given<'static>,
    /// Every part as well, and little of each: for machines on which a kernel is slow.
    pub little: Given<'static>,
}

impl TestSizes {
    /// Those of a file, which is as large as it is.
    pub const OWN: Self = Self { whole: &[], little: &[] };
}

/// What an example is.
#[derive(Clone, Copy, Debug)]
pub struct ExampleDescription {
    /// Its name; that of its program as well.
    pub name: &'static str,
    /// What it computes, in one line.
    pub summary: &'static str,
    /// What its program is.
    pub program: Program,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// The sizes at which tests run it.
    pub sizes: TestSizes,
    /// The tensors that a user may give; the others are made from the parameter `seed`.
    pub inputs: &'static [TensorSpec],
    /// The tensors that a user may have.
    pub outputs: &'static [TensorSpec],
}

/// An example as a user sees it.
pub trait Example: Sync {
    /// What it is.
    fn description(&self) -> ExampleDescription;

    /// [`ExampleDescription::name`].
    fn name(&self) -> &'static str {
        self.description().name
    }

    /// [`ExampleDescription::summary`].
    fn summary(&self) -> &'static str {
        self.description().summary
    }

    /// [`ExampleDescription::program`].
    fn program(&self) -> Program {
        self.description().program
    }

    /// [`ExampleDescription::params`].
    fn params(&self) -> &'static [ParamSpec] {
        self.description().params
    }

    /// [`ExampleDescription::sizes`].
    fn sizes(&self) -> TestSizes {
        self.description().sizes
    }

    /// [`ExampleDescription::inputs`].
    fn inputs(&self) -> &'static [TensorSpec] {
        self.description().inputs
    }

    /// [`ExampleDescription::outputs`].
    fn outputs(&self) -> &'static [TensorSpec] {
        self.description().outputs
    }

    /// What a run with these parameters needs of a device.
    fn needs(&self, params: &Params) -> Needs {
        let _ = params;
        Needs::USUAL
    }

    /// What the program means by a code of its own, where it gives up.
    fn failure(&self, code: i32) -> Option<&'static str> {
        let _ = code;
        None
    }

    /// The extent that is called `dim` in a [`TensorSpec`]; `None`: as large as the tensor is.
    fn extent(&self, dim: &str, params: &Params) -> Option<u64> {
        Some(params.get(dim))
    }

    /// The parameter, and its value, that an input with `extent` in `dim` implies.
    fn implied(
        &self,
        dim: &'static str,
        extent: u64,
        params: &Params,
    ) -> Option<(&'static str, u64)> {
        params.spec(dim).map(|spec| (spec.name, extent))
    }

    /// The whole number that encodes `text` in a parameter, where that is no whole number itself.
    fn number(&self, name: &str, text: &str) -> Option<std::string::String> {
        let _ = (name, text);
        None
    }

    /// Checks everything, then puts inputs and scratch into the memory of `device`.
    ///
    /// `params` are as [`resolve`] left them.
    ///
    /// # Errors
    /// What does not fit together, with names and numbers; what the device refuses.
    fn prepare(&self, params: &Params, inputs: &Inputs, device: &Device)
    -> Result<Prepared, Error>;

    /// Whether it is a program for the devices of a group. It runs on one device as well. Such examples say so with `for_groups!()`.
    fn is_for_groups(&self) -> bool {
        false
    }

    /// [`prepare`](Self::prepare) for one device of a group: what that device has, and the check of what it computes.
    ///
    /// # Errors
    /// Those of [`prepare`](Self::prepare); parameters that so many ranks cannot share; an example that is not for groups.
    fn prepare_member(
        &self,
        member: GroupRank,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        member.must_be_alone(self.name())?;
        self.prepare(params, inputs, device)
    }
}

/// What each example for groups has besides [`Example::prepare_member`]: it is one for groups, and one device is a group of one.
macro_rules! for_groups {
    () => {
        fn is_for_groups(&self) -> bool {
            true
        }

        fn prepare(
            &self,
            params: &$crate::host::Params,
            inputs: &$crate::host::Inputs,
            device: &pto_host::Device,
        ) -> Result<$crate::host::Prepared, $crate::host::Error> {
            self.prepare_member($crate::host::GroupRank::ALONE, params, inputs, device)
        }
    };
}
pub(crate) use for_groups;

/// Lists the jobs of the rows of the table.
macro_rules! list {
    ($($name:literal $module:ident $job:ident $graph:tt $stream:tt;)*) => {
        /// All examples.
        pub static EXAMPLES: &[&dyn Example] = &[$(&crate::$module::job::$job),*];
    };
}

crate::examples! { [list] }

/// The example of this name.
///
/// # Errors
/// [`Error::Unknown`], with the names that there are.
pub fn find(name: &str) -> Result<&'static dyn Example, Error> {
    let found = EXAMPLES.iter().copied().find(|example| example.name() == name);
    found.ok_or_else(|| Error::unknown("example", name, EXAMPLES.iter().map(|e| e.name())))
}

/// Prepares an example with these parameters, and random inputs.
///
/// # Errors
/// Those of [`Params::set`], [`resolve`] and [`Example::prepare`].
pub fn prepare(
    example: &dyn Example,
    given: Given<'_>,
    device: &Device,
) -> Result<Prepared, Error> {
    let mut params = Params::defaults(example.params());
    for (name, value) in given {
        params.set(name, value)?;
    }
    resolve(example, &mut params, &Inputs::default())?;
    example.prepare(&params, &Inputs::default(), device)
}

/// Makes parameters and inputs agree: a parameter that the user did not give takes its value from the shapes
/// of the inputs; then every input is checked against its [`TensorSpec`].
///
/// # Errors
/// An input that the example does not have; a wrong type, rank or extent; an extent out of range.
pub fn resolve(example: &dyn Example, params: &mut Params, inputs: &Inputs) -> Result<(), Error> {
    for name in inputs.names() {
        if !example.inputs().iter().any(|spec| spec.name == name) {
            let what = "input";
            return Err(Error::unknown(what, name, example.inputs().iter().map(|s| s.name)));
        }
    }
    let given = || example.inputs().iter().filter_map(|spec| Some((spec, inputs.get(spec.name)?)));
    for (spec, tensor) in given() {
        spec.check_type(tensor)?;
        for (dim, extent) in spec.dims.iter().zip(tensor.shape()) {
            if let Some((name, value)) = example.implied(dim, *extent, params) {
                params.imply(name, value, spec.name)?;
            }
        }
    }
    for (spec, tensor) in given() {
        spec.check_shape(tensor, |dim| example.extent(dim, params))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{EXAMPLES, Inputs, Params, Program, Tensor, find, resolve};
    use pto_graph::BuilderSet;
    use std::collections::BTreeSet;
    use std::string::ToString;
    use std::vec;

    #[test]
    fn every_example_has_a_program_of_its_name() {
        let (graphs, streams) =
            (crate::ExampleBuilders.names(), crate::ExampleBuilders.stream_names());
        for example in EXAMPLES {
            let is_graph = example.program() == Program::Graph;
            let names = if is_graph { graphs } else { streams };
            assert!(names.contains(&example.name()), "{}", example.name());
            assert!(is_graph || !graphs.contains(&example.name()), "{}", example.name());
        }
        let all: BTreeSet<_> = graphs.iter().chain(streams).collect();
        // Three programs are no examples: those that expand plans, measure collectives, and measure a layer of a group.
        assert_eq!(all.len(), EXAMPLES.len() + 3);
    }

    #[test]
    fn an_unknown_example_is_answered_with_the_nearest() {
        let error = find("paged_atention").err().unwrap().to_string();
        assert!(error.contains("did you mean 'paged_attention'?"), "{error}");
        assert!(error.contains("random_dag"), "{error}");
    }

    #[test]
    fn every_dimension_of_every_tensor_has_an_extent() {
        for example in EXAMPLES {
            let params = Params::defaults(example.params());
            for spec in example.inputs().iter().chain(example.outputs()) {
                for dim in spec.dims {
                    let _ = example.extent(dim, &params);
                }
            }
        }
    }

    #[test]
    fn shapes_give_the_parameters_that_the_user_did_not() {
        let example = find("matmul").unwrap();
        let mut params = Params::defaults(example.params());
        let mut inputs = Inputs::default();
        inputs.insert("a", Tensor::f32(vec![3, 5], vec![0.0; 15]));
        inputs.insert("b", Tensor::f32(vec![5, 7], vec![0.0; 35]));
        resolve(example, &mut params, &inputs).unwrap();
        assert_eq!(["m", "n", "k"].map(|name| params.get(name)), [3, 7, 5]);

        inputs.insert("b", Tensor::f32(vec![6, 7], vec![0.0; 42]));
        let mut params = Params::defaults(example.params());
        let error = resolve(example, &mut params, &inputs).unwrap_err().to_string();
        assert!(error.contains("'k'") && error.contains("'a'") && error.contains("'b'"), "{error}");
    }

    #[test]
    fn a_given_parameter_is_kept_and_a_shape_that_contradicts_it_refused() {
        let example = find("matmul").unwrap();
        let mut params = Params::defaults(example.params());
        params.set("k", "4").unwrap();
        let mut inputs = Inputs::default();
        inputs.insert("a", Tensor::f32(vec![3, 5], vec![0.0; 15]));
        let error = resolve(example, &mut params, &inputs).unwrap_err().to_string();
        assert!(error.contains("[3, 5]") && error.contains("[m = 3, k = 4]"), "{error}");
    }
}
