//! Compiles the guard around foreign calls (`c/guard.c`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    #[cfg(feature = "devices")]
    cc::Build::new()
        .file("c/guard.c")
        .std("gnu11")
        .warnings_into_errors(true)
        // An exception that a builder in C++ does not catch must end here (std::terminate, then SIGABRT, which the
        // guard survives), not search on in frames of Rust.
        .flag("-fno-asynchronous-unwind-tables")
        .flag("-fno-unwind-tables")
        .flag("-fno-exceptions")
        .compile("pto_guard");
}
