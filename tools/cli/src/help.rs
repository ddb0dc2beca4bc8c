//! The end of each `--help`: examples. Also the exit codes, and the text of `--version`.

/// The release, and the commit that it was built from where the build knows it.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PTO_COMMIT"), ")");

/// What the exit codes mean. The code of a line is followed by two blanks.
pub(crate) const EXIT_CODES: &str = "\
0  success; for a run also: the result is right
1  the result of the run is wrong, or the check found something wrong with the program; in virtual
   time also: a checker found a violation, or the injected fault did not happen
2  an unknown name, a bad value or a bad input file; nothing ran
3  the run ended with a fault of the runtime (`pto info faults`)
4  a file could not be read or written, or an internal error
130  Ctrl-C; `pto soak` also says what it has tried, and how to go on
A kernel that crashes on the simulator ends the command by its signal, after a line that names it.";

/// The examples of a command.
macro_rules! examples {
    ($($name:ident: $($line:literal),+;)*) => {
        $(pub(crate) const $name: &str = concat!("Examples:", $("\n  ", $line,)+);)*
    };
}

examples! {
    PTO: "pto run paged_attention --hosting virtual               # try this first", "pto run paged_attention --trace run.json && pto view run.json", "pto info                                                # what can be run", "pto help run                                            # every option of a command", "pto info exit-codes", "pto completions bash > ~/.local/share/bash-completion/completions/pto", "pto man ~/.local/share/man/man1";
    RUN: "pto run paged_attention", "pto run random_dag --hosting virtual --seed 7 --trace run.json", "pto run tp_decoder --group local:4", "mpirun -n 8 pto run tp_decoder --group mpi", "pto run matmul --input a=a.npy --output c=c.npy --dump tensors", "pto run graph.jsonl --kernels kernels.so --input row=row.npy --expect mean=golden.npy", "pto run vector_example --device a2a3";
    SOAK: "pto soak --seeds 1000", "pto soak --replay 7 --faults", "pto soak --sessions --seeds 1000", "pto soak --groups --seeds 1000", "mpirun -n 64 pto soak --seeds 100000000";
    ANALYZE: "pto run cholesky --trace run.json && pto analyze run.json", "pto analyze after.json --against before.json";
    VIEW: "pto run cholesky --trace run.json && pto view run.json", "pto view run.json -o run.svg", "pto view before.json after.json -o both.html";
    GRAPH: "pto graph paged_attention --param batch=1 -o graph.svg", "pto graph paged_attention -o graph.html";
    CHECK: "pto check decoder_layer --heap-bytes 512K", "pto check examples/graphs/row_sums.jsonl", "pto check cholesky --save graph.jsonl --save-inputs inputs && pto run graph.jsonl --input matrix=inputs/matrix.npy";
    BENCH: "pto bench", "pto bench --graph chain --tasks 10000 --rounds 3", "pto bench --peers --threads 1", "pto bench --device-metg=matmul,tb_fft", "pto bench --sessions --commands 1000000";
    BENCH_GROUPS: "pto bench groups --ranks 2,8,64", "pto bench groups --layer --json";
    BENCH_COLLECTIVES: "pto bench collectives --group local:4 --to 1M", "pto bench collectives --group virtual:8 --to 64M --factor 8 --svg bench.svg", "mpirun -n 2 pto bench collectives --group mpi --from 64K --to 4M";
    INFO: "pto info kernels", "pto info faults";
    COMPAT: "pto compat simpler programs", "pto compat cann run -- ./program input.bin";
    SIMPLER: "pto compat simpler programs", "pto compat simpler programs --json";
    FW: "pto fw build --release", "pto fw list";
    CANN: "pto compat cann run -- ./program input.bin", "pto compat cann replay calls.txt";
    ACL_RUN: "pto compat cann run --virtual --seed 7 -- ./program input.bin", "pto compat cann run --fail aclrtMalloc:3:207001 -- ./program", "pto compat cann run --fail aicore-exception:2 -- ./program", "pto compat cann run --device qemu -- ./program", "pto compat cann run --record calls.txt -- ./program";
    ACL_REPLAY: "pto compat cann replay calls.txt", "pto compat cann replay --virtual --seed 7 --check calls.txt";
    FW_BUILD: "pto fw build --release", "pto fw build --image cann --aicore --pto-isa pto-isa/include --release";
    FW_SEAL: "pto fw seal target/aicore-dav-c220";
    FW_INSPECT: "pto fw inspect firmware.img";
    FW_FLASH: "pto fw flash firmware.img kernels.img";
    FW_LIST: "pto fw list";
    FW_ROLLBACK: "pto fw rollback --device qemu";
    PROGRAM: "pto program build examples/workloads/softmax.workload -o softmax.ptop";
    PROGRAM_BUILD: "pto program build examples/workloads/softmax.workload --role M=temporary --role S=temporary -o softmax.ptop", "pto program build examples/graphs/row_sums.jsonl -o row_sums.ptop", "pto program build examples/graphs/own_kernels.jsonl --kernels kernels.so -o own.ptop";
    PROGRAM_INSPECT: "pto program inspect softmax.ptop", "pto program inspect softmax.ptop --section source";
    PROGRAM_RUN: "pto program run softmax.ptop --param scale=0.5 --rounds 10", "pto program run softmax.ptop --input X=x.npy --param scale=0.5 --expect Y=golden.npy --pcc 0.999", "pto program run softmax.ptop --param scale=0.5 --device qemu";
    PROGRAM_CHECK: "pto program check softmax.ptop --system device.json";
    PROGRAM_QUERY: "pto program query -o device.json";
    PROGRAM_DIFF: "pto program diff before.ptop after.ptop";
    COMPLETIONS: "pto completions bash > ~/.local/share/bash-completion/completions/pto";
    MAN: "pto man ~/.local/share/man/man1";
}

#[cfg(test)]
mod tests {
    use super::EXIT_CODES;
    use crate::args::Cli;
    use crate::errors::Exit;
    use clap::CommandFactory;

    #[test]
    fn every_code_is_explained() {
        let all =
            [Exit::Pass, Exit::Wrong, Exit::Usage, Exit::Fault, Exit::Internal, Exit::Interrupted];
        for exit in all {
            assert!(format!("\n{EXIT_CODES}").contains(&format!("\n{}  ", exit as u8)), "{exit:?}");
        }
    }

    /// Each command, and each command of a command.
    fn all(command: &clap::Command, name: &str, pages: &mut Vec<(String, String)>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        pages.push((name.to_owned(), help));
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            all(inner, &format!("{name} {}", inner.get_name()), pages);
        }
    }

    /// How many lines the help of a command has, and of each command of it.
    fn lengths(command: &mut clap::Command, name: &str, found: &mut Vec<(String, usize)>) {
        found.push((name.to_owned(), command.render_help().to_string().lines().count()));
        for inner in command.get_subcommands_mut().filter(|inner| inner.get_name() != "help") {
            let name = format!("{name} {}", inner.get_name());
            lengths(inner, &name, found);
        }
    }

    /// On a terminal of 80 columns the help of the command fits a screen, and that of each of its commands two.
    #[test]
    fn every_help_is_short() {
        let mut command = Cli::command().term_width(80);
        command.build();
        let mut found = Vec::new();
        lengths(&mut command, "pto", &mut found);
        let most = |name: &str| if name == "pto" { 40 } else { 90 };
        let long: Vec<_> = found.iter().filter(|(name, lines)| *lines > most(name)).collect();
        assert!(long.is_empty() && found.len() > 25, "{long:?} of {}", found.len());
    }

    #[test]
    fn every_help_has_an_example_of_its_command() {
        let mut pages = Vec::new();
        all(&Cli::command(), "pto", &mut pages);
        assert!(pages.len() > 15, "{}", pages.len());
        for (name, help) in pages {
            assert!(help.starts_with("Examples:\n") && help.contains(&name), "{name}: {help}");
        }
    }
}
