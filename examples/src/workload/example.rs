//! A workload in a file, as what `pto run` and the tests run.

use std::format;
use std::string::String;

use pto_host::Device;

use super::file::WorkloadFile;
use super::job;
use crate::host::f32_of;
use crate::host::job::Prepared;
use crate::host::{
    Error, Example, ExampleDescription, GroupRank, Inputs, Needs, Params, TestSizes,
};

impl Example for WorkloadFile {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: self.name,
            summary: "a workload file",
            program: self.program,
            params: self.params,
            sizes: TestSizes::OWN,
            inputs: self.inputs,
            outputs: self.outputs,
        }
    }

    fn needs(&self, _: &Params) -> Needs {
        Needs { kinds: self.kinds, ..Needs::USUAL }
    }

    fn extent(&self, dim: &str, _: &Params) -> Option<u64> {
        dim.parse().ok()
    }

    fn implied(&self, _: &'static str, _: u64, _: &Params) -> Option<(&'static str, u64)> {
        None
    }

    fn number(&self, name: &str, text: &str) -> Option<String> {
        let is_number = self.is_float(name);
        let value = f32_of(text).filter(|_| is_number)?;
        Some(format!("{}", value.to_bits()))
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        job::prepare(self, GroupRank::ALONE, (params, inputs), device)
    }

    /// A pipeline whose processes are on ranks.
    fn is_for_groups(&self) -> bool {
        self.checked.workload().is_on_ranks()
    }

    fn prepare_member(
        &self,
        member: GroupRank,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        if !self.is_for_groups() {
            member.must_be_alone(self.name())?;
        }
        job::prepare(self, member, (params, inputs), device)
    }
}
