//! `libacl_op_compiler.so`, which is `libfmk_onnx_parser.so` as well: the graph compiler as frameworks in C++ call it. It has eight functions with the names of
//! `ge::`, which call the functions `ptoAclGraph*` of `libascendcl.so`.
//!
//! ```text
//! a framework --ge::aclgrphBuildModel(..)--> this library --ptoAclGraphBuild(..)--> libascendcl.so --> plug-in: models, operators
//! ```
//! The functions are written in C++ (`cpp/graph.cpp`): their arguments are maps, strings and shared pointers of the C++ library, which its own compiler lays
//! out, walks and frees. A library of Rust exports its own symbols alone. So each function of C++ has an entry point here with its name, which jumps to it.
//!
//! Why it is so: `docs/decisions/cann-layers.md`.

macro_rules! entries {
    ($($name:literal => $to:ident,)*) => {$(
        const _: () = {
            unsafe extern "C" {
                fn $to();
            }

            #[cfg(target_arch = "x86_64")]
            // SAFETY: the name is that of a function of C++ which no other library of ours has. The body leaves arguments and stack as they are, and what it
            // jumps to has the type that the caller means.
            #[unsafe(export_name = $name)]
            #[unsafe(naked)]
            extern "C" fn entry() {
                std::arch::naked_asm!("jmp {to}", to = sym $to)
            }

            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            #[unsafe(export_name = $name)]
            #[unsafe(naked)]
            extern "C" fn entry() {
                std::arch::naked_asm!("b {to}", to = sym $to)
            }
        };
    )*};
}

// The names as the C++ interface of Linux writes them: `c++filt` reads them.
entries! {
    "_ZN2ge12AscendStringC1EPKc" => pto_ge_make_string,
    "_ZN2ge12AscendStringC2EPKc" => pto_ge_make_string,
    "_ZNK2ge12AscendStringltERKS0_" => pto_ge_string_less,
    "_ZN2ge5GraphC1EPKc" => pto_ge_make_graph,
    "_ZN2ge5GraphC2EPKc" => pto_ge_make_graph,
    "_ZN2ge22aclgrphBuildInitializeERSt3mapINS_12AscendStringES1_St4lessIS1_ESaISt4pairIKS1_S1_EEE" => pto_ge_build_initialize,
    "_ZN2ge20aclgrphBuildFinalizeEv" => pto_ge_build_finalize,
    "_ZN2ge23aclgrphParseONNXFromMemEPKcmRKSt3mapINS_12AscendStringES3_St4lessIS3_ESaISt4pairIKS3_S3_EEERNS_5GraphE" => pto_ge_parse,
    "_ZN2ge17aclgrphBuildModelERKNS_5GraphERKSt3mapINS_12AscendStringES4_St4lessIS4_ESaISt4pairIKS4_S4_EEERNS_15ModelBufferDataE" => pto_ge_build_model,
    "_ZN2ge16aclgrphSaveModelEPKcRKNS_15ModelBufferDataE" => pto_ge_save_model,
}
