//! The functions that are used, each by its name, with its parameters.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

use super::error::A2a3Error;
use super::layouts::{
    AicpuArgs, ArgsEx, BinaryConfig, CpuKernelArgs, DevBinary, LaunchConfig, MapIn, MapOut,
    TaskConfig,
};
use super::libraries::Loaded;
use super::library::Library;

/// A stream, a binary, a function: words of the vendor's.
pub(crate) type Handle = *mut c_void;

macro_rules! calls {
    ($($library:ident { $($field:ident = $name:literal ($($type:ty),*) -> $result:ty;)* })*) => {
        /// Every function, found.
        pub(crate) struct Calls {
            $($(pub(super) $field: unsafe extern "C" fn($($type),*) -> $result,)*)*
        }

        impl Calls {
            fn resolve(sought: &mut Sought<'_>) -> Result<Self, A2a3Error> {
                $($(
                    let $field = sought.symbol(Library::$library, $name);
                )*)*
                sought.check()?;
                Ok(Self {
                    $($(
                        // SAFETY: the function of this name has these parameters, by the vendor's interface; it
                        // was found, as `check` has seen.
                        $field: unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>($field)
                        },
                    )*)*
                })
            }
        }
    };
}

calls! {
    Acl {
        init = "aclInit" (*const c_char) -> i32;
        finalize = "aclFinalize" () -> i32;
        recent_message = "aclGetRecentErrMsg" () -> *const c_char;
        soc_name = "aclrtGetSocName" () -> *const c_char;
        device_count = "aclrtGetDeviceCount" (*mut u32) -> i32;
        device_fact = "aclrtGetDeviceInfo" (u32, i32, *mut i64) -> i32;
        set_device = "aclrtSetDevice" (i32) -> i32;
        reset_device = "aclrtResetDevice" (i32) -> i32;
        reset_device_force = "aclrtResetDeviceForce" (i32) -> i32;
        set_op_timeout = "aclrtSetOpExecuteTimeOut" (u32) -> i32;
        malloc = "aclrtMalloc" (*mut *mut c_void, usize, i32) -> i32;
        free = "aclrtFree" (*mut c_void) -> i32;
        memcpy = "aclrtMemcpy" (*mut c_void, usize, *const c_void, usize, i32) -> i32;
        memset = "aclrtMemset" (*mut c_void, usize, i32, usize) -> i32;
        create_stream = "aclrtCreateStream" (*mut Handle) -> i32;
        destroy_stream = "aclrtDestroyStream" (Handle) -> i32;
        query_stream = "aclrtStreamQuery" (Handle, *mut i32) -> i32;
        synchronize_stream = "aclrtSynchronizeStreamWithTimeout" (Handle, i32) -> i32;
    }
    Runtime {
        launch_aicpu_by_args = "rtAicpuKernelLaunchExWithArgs" (u32, *const c_char, u32, *const AicpuArgs, *const c_void, Handle, u32) -> i32;
        load_binary = "rtsBinaryLoadFromFile" (*const c_char, *const BinaryConfig, *mut Handle) -> i32;
        unload_binary = "rtsBinaryUnload" (Handle) -> i32;
        function_by_name = "rtsFuncGetByName" (Handle, *const c_char, *mut Handle) -> i32;
        launch_cpu_kernel = "rtsLaunchCpuKernel" (Handle, u32, Handle, *const LaunchConfig, *mut CpuKernelArgs) -> i32;
        register_all_kernel = "rtRegisterAllKernel" (*const DevBinary, *mut Handle) -> i32;
        launch_with_handle = "rtKernelLaunchWithHandleV2" (Handle, u64, u32, *mut ArgsEx, *mut c_void, Handle, *const TaskConfig) -> i32;
        c2c_address = "rtGetC2cCtrlAddr" (*mut u64, *mut u32) -> i32;
    }
    Hal {
        memory_control = "halMemCtl" (i32, *mut MapIn, usize, *mut MapOut, *mut usize) -> i32;
        hal_fact = "halGetDeviceInfo" (u32, i32, i32, *mut i64) -> i32;
        hal_fact_by_buffer = "halGetDeviceInfoByBuff" (u32, i32, i32, *mut c_void, *mut i32) -> i32;
    }
}

/// The libraries, while functions are looked for in them.
struct Sought<'a> {
    libraries: &'a [(Library, Loaded)],
    missing: Vec<(Library, &'static str)>,
}

impl Sought<'_> {
    fn library(&self, library: Library) -> Option<&Loaded> {
        self.libraries.iter().find(|(one, _)| *one == library).map(|(_, loaded)| loaded)
    }

    fn symbol(&mut self, library: Library, name: &'static str) -> *mut c_void {
        let of_loader = std::ffi::CString::new(name).unwrap_or_default();
        let found = self.library(library).and_then(|loaded| loaded.symbol(&of_loader));
        found.unwrap_or_else(|| {
            self.missing.push((library, name));
            std::ptr::null_mut()
        })
    }

    /// Nothing is missing. Otherwise the error names everything that the first incomplete library lacks.
    fn check(&self) -> Result<(), A2a3Error> {
        let Some((library, _)) = self.missing.first() else { return Ok(()) };
        let of_it = self.missing.iter().filter(|(one, _)| one == library);
        let path = self.library(*library).map(|loaded| loaded.path.clone()).unwrap_or_default();
        let symbols = of_it.map(|(_, name)| *name).collect();
        Err(A2a3Error::MissingSymbols { path, symbols, version: self.version() })
    }

    /// The version of the interface, from a function that old ones do not have.
    fn version(&self) -> Option<[i32; 3]> {
        let address = self.library(Library::Acl)?.symbol(c"aclrtGetVersion")?;
        // SAFETY: the function of this name has these parameters, by the vendor's interface.
        let call = unsafe {
            std::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut i32, *mut i32, *mut i32) -> i32,
            >(address)
        };
        let [mut major, mut minor, mut patch] = [0; 3];
        // SAFETY: three places for numbers.
        let code = unsafe { call(&raw mut major, &raw mut minor, &raw mut patch) };
        (code == 0).then_some([major, minor, patch])
    }
}

/// A function of the vendor's runtime library, by its name; `None`: it has none of this name.
pub(super) fn function(home: Option<&Path>, name: &CStr) -> Result<Option<Handle>, A2a3Error> {
    Ok(Loaded::find(Library::Runtime, home)?.symbol(name))
}

/// The major version of the interface that this is written for.
const MAJOR: i32 = 1;

impl Calls {
    /// Loads the libraries, and finds every function.
    pub(crate) fn load(home: Option<&Path>) -> Result<Self, A2a3Error> {
        let all = [Library::Hal, Library::Runtime, Library::Acl];
        let load = |library| Loaded::find(library, home).map(|loaded| (library, loaded));
        let libraries: Vec<_> = all.into_iter().map(load).collect::<Result<_, _>>()?;
        let mut sought = Sought { libraries: &libraries, missing: Vec::new() };
        let calls = Self::resolve(&mut sought)?;
        match sought.version() {
            Some(found) if found[0] != MAJOR => Err(A2a3Error::Version { found }),
            _ => Ok(calls),
        }
    }
}
