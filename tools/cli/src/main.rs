//! The program `pto`; the library beside it is the command.

fn main() -> std::process::ExitCode {
    pto_cli::main()
}
