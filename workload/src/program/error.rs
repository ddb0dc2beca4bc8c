//! The errors of reading a program file, and of writing one.

use super::version::{MAJOR, MINOR};

/// What is wrong with a program or its file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The file is something else.
    #[error(
        "This is not a program file: it begins with {found:02x?}. A program file begins with 'PTOPROG'; `pto program build` writes one."
    )]
    NotAProgram {
        /// The file's first bytes.
        found: Vec<u8>,
    },
    /// The file is of another version.
    #[error(
        "The program file has version {found}, and this reader wants {MAJOR}.0 or later of {MAJOR} (it writes {MAJOR}.{MINOR}). Build the program again with this `pto`, or use the `pto` that built it."
    )]
    Version {
        /// The version of the file.
        found: String,
    },
    /// Something in the file has another version than this reader.
    #[error(
        "The {what} of the program has version {found}, and version {wanted} is wanted. Build the program again with this `pto`."
    )]
    Part {
        /// What it is.
        what: &'static str,
        /// Its version.
        found: u64,
        /// The version of this reader.
        wanted: u64,
    },
    /// The file is damaged.
    #[error(
        "The program file is damaged: its checksum is {sealed}, and its content gives {found}. Copy it again, or build it again."
    )]
    Checksum {
        /// In the file.
        sealed: String,
        /// Computed.
        found: String,
    },
    /// The file has a part that a reader has to know, and this one does not.
    #[error(
        "The program file has section {kind}, which a reader has to know and this one does not. Use a newer `pto`."
    )]
    UnknownSection {
        /// The number of the section's kind.
        kind: u32,
    },
    /// A part is missing.
    #[error("The program file has no section '{section}'. Build the program again.")]
    MissingSection {
        /// The section's name.
        section: &'static str,
    },
    /// A part does not say what it should.
    #[error("Section '{section}' of the program file, byte {at}: {what}. Build the program again.")]
    Section {
        /// The section's name.
        section: &'static str,
        /// The byte, from the beginning of the section.
        at: usize,
        /// What is wrong.
        what: String,
    },
    /// The hash of the tensors is another one than the file says.
    #[error(
        "The tensors of the program have the hash {found:#018x}, and the file says {stated:#018x}. Build the program again."
    )]
    Interface {
        /// In the file.
        stated: u64,
        /// Computed.
        found: u64,
    },
    /// The program is for another target.
    #[error(
        "The program is for target '{found}', and '{wanted}' is wanted here. Build it for '{wanted}', or for 'any'."
    )]
    Target {
        /// The target of the program.
        found: String,
        /// The target here.
        wanted: String,
    },
    /// The program has native kernels, but none for this processor.
    #[error(
        "Program {program} has native kernels for {known}, and none for {wanted}. Build it with an object for {wanted}: `pto program build --kernels OBJECT.so`."
    )]
    Processor {
        /// The program.
        program: String,
        /// The processor here.
        wanted: String,
        /// The processors that it has code for.
        known: String,
    },
    /// A file cannot hold this name of a program or of a target.
    #[error("The {what} {name:?} {defect}.")]
    Name {
        /// What has the name: program or target.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong.
        defect: String,
    },
    /// A tensor cannot be as it is described.
    #[error("Tensor {name} {what}.")]
    Tensor {
        /// The tensor.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The program has no tensor of this name.
    #[error("The program has no tensor {name}. It has: {known}.")]
    NoTensor {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The workload has no plan.
    #[error(transparent)]
    Plan(#[from] crate::plan::PlanError),
}
