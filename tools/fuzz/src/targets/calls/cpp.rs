//! The interfaces of C++: an orchestration of `bindings/field`, and `class Runtime` with a builder plugin. Their sources, in `cpp/`, make the calls of a
//! script; `g++` compiles them once for a run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use pto_field::{
    Call, CallOptions, Callable, EdgeRule, FieldDevice, Keeps, KernelCode, MemorySpace, ObjectCode,
    ProgramSource, Rings, Role, Tensor, TheirLimits,
};
use pto_host::abi::{CoreKind, FuncId, RuntimeVariant};
use pto_host::{DeviceOptions, Hosting, Kernel, RunControl, RunOptions};
use pto_native::field::FieldRuntime;
use pto_native::{Failure, SharedDevice};

use super::play::{CALL_BYTES, tell};
use super::signals;
use crate::choices::Choices;

/// Names the folder with the compiled sources.
pub const FOLDER: &str = "PTO_FUZZ_CPP";
/// Calls of one run: most runs end with the first one that is a fatal error.
const CALLS_OF_A_RUN: usize = 12;

/// Both sources, and where their headers are.
const SOURCES: [(&str, &[&str]); 2] = [
    ("orchestration", &["../../bindings/field/include"]),
    ("runtime", &["../../bindings/include"]),
];

/// Compiles the sources into a folder.
///
/// # Panics
/// The compiler is not there, or refuses them.
pub fn compile(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, headers) in SOURCES {
        let mut compiler = Command::new("g++");
        compiler.args(["-shared", "-fPIC", "-O1", "-std=c++17", "-fno-gnu-unique", "-Wall"]);
        for header in headers {
            compiler.arg("-I").arg(root.join(header));
        }
        compiler.arg(root.join("cpp").join(name).with_extension("cpp"));
        compiler.arg("-o").arg(folder.join(name).with_extension("so"));
        let output = compiler.output().expect("g++ starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn object(name: &str) -> PathBuf {
    let folder = std::env::var_os(FOLDER).expect("the folder of the compiled sources is named");
    PathBuf::from(folder).join(name).with_extension("so")
}

fn callable() -> &'static Callable {
    static CALLABLE: OnceLock<Callable> = OnceLock::new();
    CALLABLE.get_or_init(|| {
        let object = object("orchestration");
        let code = ObjectCode::Path(&object);
        let kernel =
            |func_id, kind, name| KernelCode { func_id, kind, name, symbol: "kernel_entry", code };
        let kernels = [kernel(0, CoreKind::AIV, "vector"), kernel(1, CoreKind::AIC, "cube")];
        let entry = "aicpu_orchestration_entry";
        let source = ProgramSource { orchestration: code, entry, config: None, kernels: &kernels };
        Callable::load(&source).unwrap_or_else(|error| panic!("{error}"))
    })
}

unsafe extern "C" fn nothing(_: *const u64) {}

fn hosting(choices: &mut Choices<'_>) -> Hosting {
    let pool = |threads| Hosting::Pool {
        os_threads: std::num::NonZeroUsize::new(threads).unwrap_or(std::num::NonZeroUsize::MIN),
    };
    match choices.byte() % 8 {
        0..=4 => pool(1),
        5 => pool(2),
        6 => Hosting::Virtual(pto_host::virtual_time::VirtualOptions::default()),
        _ => Hosting::Threads,
    }
}

fn device_options(choices: &mut Choices<'_>) -> DeviceOptions {
    DeviceOptions { aic: 2, aiv: 4, gm_bytes: 96 << 20, hosting: hosting(choices) }
}

/// What the runs of a script are made on.
enum Under {
    Orchestration(FieldDevice),
    Runtime(Arc<SharedDevice>),
}

impl Under {
    fn open(is_orchestration: bool, options: DeviceOptions) -> Result<Self, Failure> {
        if is_orchestration {
            return FieldDevice::open(options).map(Self::Orchestration);
        }
        let device = SharedDevice::open_sim(options)?;
        let nothing = Kernel::from_fn("nothing", CoreKind::AIV, nothing);
        device.with(|device| device.register_kernel(FuncId(900), nothing))??;
        Ok(Self::Runtime(device))
    }

    fn run(&self, calls: &[u8]) {
        tell(format_args!("a run with {} calls", calls.len() / CALL_BYTES));
        match self {
            Self::Orchestration(device) => orchestrate(device, calls),
            Self::Runtime(device) => with_runtime(device, calls),
        }
    }
}

/// Plays a script: each thread makes every so many runs.
pub(super) fn play(script: &[u8]) {
    let mut choices = Choices::new(script.get(..CALL_BYTES).unwrap_or_default());
    let threads = choices.one_of(&[1, 1, 2, 3]);
    let interrupted = choices.byte() < 64;
    let is_orchestration = choices.byte() < 160;
    let under = Under::open(is_orchestration, device_options(&mut choices));
    let under = &under.unwrap_or_else(|error| panic!("{error}"));
    let calls = script.get(CALL_BYTES..).unwrap_or_default();
    let of_thread = |thread: usize| {
        let runs = calls.chunks(CALLS_OF_A_RUN * CALL_BYTES).skip(thread).step_by(threads);
        runs.for_each(|run| under.run(run));
    };
    if interrupted {
        signals::begin();
    }
    std::thread::scope(|scope| {
        (1..threads).for_each(|thread| drop(scope.spawn(move || of_thread(thread))));
        of_thread(0);
    });
    signals::end();
}

/// Fails if C++ code crashed: the guard around it makes an error of that.
fn check(error: &dyn std::fmt::Display) {
    let error = error.to_string();
    tell(format_args!("error: {error}"));
    assert!(!error.contains("raised SIG"), "{error}");
    assert!(!error.contains("panicked"), "{error}");
}

fn run_options() -> RunOptions {
    RunOptions {
        aicpu_instances: 2,
        run_budget: Some(std::time::Duration::from_millis(200)),
        ..RunOptions::default()
    }
}

fn orchestrate(device: &FieldDevice, calls: &[u8]) {
    let (mut elements, shape) = ([0.0_f32; 256], [16, 16]);
    let pointer = elements.as_mut_ptr().cast();
    let tensor =
        Tensor { pointer, shape: &shape, dtype: 0, role: Role::InOut, space: MemorySpace::Host };
    let scalars = [calls.as_ptr().expose_provenance() as u64, calls.len() as u64];
    let mut choices = Choices::new(calls);
    let options = CallOptions {
        run: run_options(),
        rings: Rings { window: choices.one_of(&[16, 64, 1024]), heap_bytes: 1 << 20, edges: 0 },
        edges: choices.one_of(&[EdgeRule::Ours, EdgeRule::Theirs]),
        compares_rules: choices.byte() < 64,
        finds_shared_lines: choices.byte() < 32,
        their_limits: (choices.byte() < 32).then_some(TheirLimits { window: 16, dep_pool: 16 }),
        keeps: Keeps {
            graph: choices.byte() < 64,
            spans: choices.byte() < 32,
            arguments: choices.byte() % 3,
        },
        waits_for_outside: false,
        log_level: 0,
    };
    let call = Call { tensors: &[tensor], scalars: &scalars };
    // SAFETY: the tensor is alive, and not shared.
    let ran = unsafe { device.run(callable(), &call, &options, &RunControl::new()) };
    match ran {
        Ok(outcome) => outcome.error.iter().for_each(|error| check(error)),
        Err(failure) => check(&failure),
    }
}

fn with_runtime(device: &Arc<SharedDevice>, calls: &[u8]) {
    let mut runtime = match FieldRuntime::new(device, &run_options()) {
        Ok(runtime) => runtime,
        Err(failure) => return check(&failure),
    };
    let mut choices = Choices::new(calls);
    let variant = choices.one_of(&[
        RuntimeVariant::HOST_BUILD_GRAPH,
        RuntimeVariant::AICPU_BUILD_GRAPH,
        RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
        RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
    ]);
    let path = object("runtime");
    let plugin = plugin();
    let count = calls.len() / CALL_BYTES;
    let of_host = if variant == RuntimeVariant::HOST_BUILD_GRAPH { count } else { count / 3 };
    let (host, built) = calls.split_at(of_host * CALL_BYTES);
    let address = |bytes: &[u8]| bytes.as_ptr().expose_provenance() as u64;
    let mut words = [
        address(host),
        of_host as u64,
        address(built),
        (count - of_host) as u64,
        address(plugin),
        plugin.len() as u64,
    ];
    // SAFETY: the words are what the function expects; what they name lives until the end.
    let prepared = unsafe { runtime.orchestrate(&path, "orchestrate", &mut words) };
    if let Err(failure) = &prepared {
        check(failure);
    }
    // A program that goes on after a call that failed.
    let goes_on = prepared.is_ok() || choices.byte().is_multiple_of(2);
    if goes_on && let Err(failure) = runtime.run(variant, &run_options(), &RunControl::new()) {
        check(&failure);
    }
    // SAFETY: the source's buffers are there as long as it is loaded.
    if let Err(failure) = unsafe { runtime.finalize() } {
        check(&failure);
    }
}

fn plugin() -> &'static [u8] {
    static PLUGIN: OnceLock<Vec<u8>> = OnceLock::new();
    PLUGIN.get_or_init(|| std::fs::read(object("runtime")).expect("the plugin is read"))
}
