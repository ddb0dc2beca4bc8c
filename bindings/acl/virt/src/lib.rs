//! `libpto_acl_virt.so`: the plug-in of `libascendcl.so` whose device is the emulated AArch64 machine. It has the code of `pto-acl`, and says which
//! device is meant when it is loaded.

/// The loader of the system calls this before the program can call anything.
#[used]
// SAFETY: the section is a list of functions of this type.
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = choose;

extern "C" fn choose() {
    pto_acl_a2a3sim::choose(pto_acl_a2a3sim::Machine::Virt);
}
