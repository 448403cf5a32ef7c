//! NVRTC, NVIDIA's compiler as a library: found, loaded and called here, without `cudarc`, whose search would take the first
//! library of any version and panic where a function is missing.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::Library;

use super::error::{CudaError, DRIVER_MIN};

type Program = *mut c_void;

/// NVRTC's functions, of a library that stays loaded.
pub(super) struct Nvrtc {
    /// Major and minor.
    pub(super) version: (c_int, c_int),
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    _libraries: Vec<Library>,
}

/// What a compiler made.
#[derive(Debug)]
pub(super) struct Compiled {
    /// Machine code of one architecture.
    pub(super) cubin: Vec<u8>,
    /// What the compiler had to say.
    pub(super) log: String,
}

impl Nvrtc {
    /// The newest NVRTC that makes code which a driver of this major version takes.
    pub(super) fn find(driver: i32) -> Result<Self, CudaError> {
        let mut names: Vec<String> = (DRIVER_MIN..=driver)
            .rev()
            .map(|major| format!("libnvrtc.so.{major}"))
            .collect();
        names.push("libnvrtc.so".to_owned());
        let folders = folders();
        let mut refused = Vec::new();
        for name in &names {
            let in_folders = folders.iter().map(|folder| folder.join(name));
            let paths =
                std::iter::once(PathBuf::from(name)).chain(in_folders.filter(|p| p.is_file()));
            for path in paths {
                match Self::load(&path, driver) {
                    Ok(found) => return Ok(found),
                    // A bare name that is nowhere is no news.
                    Err(_) if path.parent() == Some(Path::new("")) && !is_loadable(&path) => {}
                    Err(why) => refused.push(format!("{}: {why}", path.display())),
                }
            }
        }
        let list = |folders: &[PathBuf]| {
            let texts: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
            texts.join(", ")
        };
        Err(CudaError::NoNvrtc {
            names: names.join(" or "),
            folders: match folders.is_empty() {
                true => String::new(),
                false => format!(" or in {}", list(&folders)),
            },
            refused: match refused.is_empty() {
                true => String::new(),
                false => format!(" ({})", refused.join("; ")),
            },
        })
    }

    /// The library at `path`, if a driver of this major version takes what it makes.
    pub(super) fn load(path: &Path, driver: i32) -> Result<Self, String> {
        let mut libraries = Vec::new();
        // A library given by its path does not find the other half of itself unless that is loaded already.
        for builtins in builtins_beside(path) {
            // SAFETY: as below.
            libraries.extend(unsafe { Library::new(builtins) });
        }
        // SAFETY: loading a library runs its initialisers, which is the purpose here; its name is NVRTC's own.
        let library = unsafe { Library::new(path) }.map_err(|e| e.to_string())?;
        let version_of: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int =
            symbol(&library, c"nvrtcVersion")?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the signature is that of nvrtc.h; it writes two integers.
        if unsafe { version_of(&raw mut major, &raw mut minor) } != 0 {
            return Err("it does not tell its version".to_owned());
        }
        if !(DRIVER_MIN..=driver).contains(&major) {
            return Err(format!(
                "it is of CUDA {major}.{minor} and the driver is made for CUDA {driver}"
            ));
        }
        Ok(Self {
            version: (major, minor),
            create: symbol(&library, c"nvrtcCreateProgram")?,
            compile: symbol(&library, c"nvrtcCompileProgram")?,
            log_size: symbol(&library, c"nvrtcGetProgramLogSize")?,
            log: symbol(&library, c"nvrtcGetProgramLog")?,
            cubin_size: symbol(&library, c"nvrtcGetCUBINSize")?,
            cubin: symbol(&library, c"nvrtcGetCUBIN")?,
            destroy: symbol(&library, c"nvrtcDestroyProgram")?,
            _libraries: {
                libraries.push(library);
                libraries
            },
        })
    }

    /// Compiles one source to machine code; the error is NVRTC's log.
    pub(super) fn compile(&self, source: &str, options: &[String]) -> Result<Compiled, String> {
        let text = |text: &str| CString::new(text).map_err(|e| e.to_string());
        let (source, name) = (text(source)?, text("kernels.cu")?);
        let options = options
            .iter()
            .map(|option| text(option))
            .collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program: Program = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: the signatures are those of nvrtc.h; both strings end with a zero and outlive the program; there are no headers.
        let made = unsafe {
            (self.create)(
                &raw mut program,
                source.as_ptr(),
                name.as_ptr(),
                0,
                none,
                none,
            )
        };
        if made != 0 {
            return Err(format!("error {made} when given the source"));
        }
        // SAFETY: the program is there, and `pointers` holds as many strings as it says.
        let failed = unsafe { (self.compile)(program, pointers.len() as c_int, pointers.as_ptr()) };
        let log = self.bytes(program, self.log_size, self.log).map(|bytes| {
            let log = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
            log.to_string_lossy().into_owned()
        });
        let done = match failed {
            0 => self
                .bytes(program, self.cubin_size, self.cubin)
                .map(|cubin| Compiled {
                    cubin,
                    log: log.unwrap_or_default(),
                }),
            error => Err(match log {
                Ok(log) if !log.trim().is_empty() => log.trim().to_owned(),
                _ => format!("error {error}"),
            }),
        };
        // SAFETY: the program is there and is not used again.
        unsafe { (self.destroy)(&raw mut program) };
        done
    }

    /// One of a program's outputs: its size is asked for, then its bytes.
    fn bytes(
        &self,
        program: Program,
        size_of: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, String> {
        let mut size = 0;
        // SAFETY: both functions are of this library and take a program of it; this one writes one integer.
        let mut error = unsafe { size_of(program, &raw mut size) };
        let mut bytes = vec![0u8; size];
        if error == 0 {
            // SAFETY: as above; this one writes `size` bytes.
            error = unsafe { get(program, bytes.as_mut_ptr().cast()) };
        }
        match error {
            0 => Ok(bytes),
            error => Err(format!("error {error} when asked for what it made")),
        }
    }
}

fn is_loadable(path: &Path) -> bool {
    // SAFETY: loading a library runs its initialisers; its name is NVRTC's own.
    unsafe { Library::new(path) }.is_ok()
}

fn symbol<F: Copy>(library: &Library, name: &CStr) -> Result<F, String> {
    // SAFETY: every caller names a function type that nvrtc.h gives for this name; the library is kept as long as the function.
    let found = unsafe { library.get::<F>(name.to_bytes_with_nul()) };
    found
        .map(|symbol| *symbol)
        .map_err(|_| format!("it lacks `{}`", name.to_string_lossy()))
}

fn builtins_beside(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    let entries = folder.and_then(|f| std::fs::read_dir(f).ok());
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.to_string_lossy().contains("libnvrtc-builtins.so."))
        .collect()
}

/// Where CUDA is put by its installer, by conda and by pip, as far as these are there.
fn folders() -> Vec<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let mut folders: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(variable)
        .flat_map(|home| [home.join("lib64"), home.join("lib")])
        .collect();
    folders.extend(["/usr/local/cuda/lib64", "/opt/cuda/lib64"].map(PathBuf::from));
    folders.extend(variable("CONDA_PREFIX").map(|prefix| prefix.join("lib")));
    let pip = variable("VIRTUAL_ENV").map(|prefix| prefix.join("lib"));
    let pythons = pip.and_then(|lib| std::fs::read_dir(lib).ok());
    for python in pythons.into_iter().flatten().flatten() {
        let packages = python.path().join("site-packages/nvidia");
        folders.extend(["cu13/lib", "cuda_nvrtc/lib"].map(|part| packages.join(part)));
    }
    folders.retain(|folder| folder.is_dir());
    folders
}
