//! The program `pto`; the library of this crate is the command.

fn main() -> std::process::ExitCode {
    pto_cli::main()
}
