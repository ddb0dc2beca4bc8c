//! Which images each device has: kept between programs, replaced whole or not at all.
//!
//! ```text
//! images/<sha256>.elf     what was flashed, by content         (disk.rs: written beside, flushed, renamed)
//! devices/<device>.json   its generations, and which is current
//! lock                    one writer at a time
//! ```
//! flash: image first, then the description that names it. An interruption leaves the old description, which names the old
//! image. What no generation names is removed at the next flash.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, io};

use serde::{Deserialize, Serialize};

use super::disk::{self, Lock, Sharing, Writer};
use super::seal;
use crate::fw::error::{ImageError, StoreError};
use crate::fw::image::Image;
use crate::fw::kind::{FlashDevice, ImageKind};

/// The environment variable that says where flashed images are kept.
pub const HOME_VARIABLE: &str = "PTO_HOME";
/// Generations that are kept of each device.
const KEPT: usize = 16;
/// The form of the description.
const FORMAT: u32 = 1;
const OLD_KEPT: &str = "the device still has what it had";
const NOT_CHANGED: &str = "nothing was changed";

/// A flashed image, as the description names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// SHA-256 of the file.
    pub sha256: String,
    /// The linker's hash of the content.
    pub build_id: String,
    /// The name of the file that was flashed.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// What a device had from one flash to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Counts them; the first is 1.
    pub number: u32,
    /// The generation that it replaced, to which a rollback goes; 0: none.
    pub before: u32,
    /// When, in seconds since 1970.
    pub flashed_at_s: u64,
    /// The firmware.
    pub firmware: Option<Entry>,
    /// The blob of kernels.
    pub kernels: Option<Entry>,
}

/// The description of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceState {
    format: u32,
    /// Number of the generation that the next run uses.
    pub current: u32,
    /// The last ones, in the order of their numbers.
    pub generations: Vec<Generation>,
}

impl DeviceState {
    /// The generation that the next run uses.
    #[must_use]
    pub fn generation(&self) -> Option<&Generation> {
        self.numbered(self.current)
    }

    fn numbered(&self, number: u32) -> Option<&Generation> {
        self.generations.iter().find(|generation| generation.number == number)
    }
}

/// The images of one device.
#[derive(Clone, Debug)]
pub struct Flashed {
    /// The generation's number.
    pub generation: u32,
    /// The firmware.
    pub firmware: Option<Image>,
    /// The blob of kernels.
    pub kernels: Option<Image>,
}

/// All flashed images.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    write: Writer,
}

impl Store {
    /// The user's: `$PTO_HOME`, else `$XDG_DATA_HOME/pto`, else `~/.local/share/pto`.
    ///
    /// # Errors
    /// `NoHome`.
    pub fn open() -> Result<Self, StoreError> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let root = set(HOME_VARIABLE).map(PathBuf::from);
        let root = root.or_else(|| Some(PathBuf::from(set("XDG_DATA_HOME")?).join("pto")));
        let root = root.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/share/pto")));
        root.map(Self::at).ok_or(StoreError::NoHome)
    }

    /// The one in this folder, which is made when something is flashed.
    #[must_use]
    pub fn at(root: PathBuf) -> Self {
        Self { root, write: disk::write_all }
    }

    #[cfg(test)]
    pub(crate) fn with_writer(root: PathBuf, write: Writer) -> Self {
        Self { root, write }
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes images the ones of a device, all together: a firmware, a blob, or both. Each must have been
    /// read by [`Image::read`]; what is not given stays.
    ///
    /// # Errors
    /// `Image`: the device cannot have it. `Io`: the device still has what it had.
    pub fn flash(&self, device: FlashDevice, images: &[&Image]) -> Result<Generation, StoreError> {
        for image in images {
            image.verify()?;
            image.suits(device)?;
        }
        self.make_folders()?;
        let _lock = self.lock(Sharing::Exclusive)?;
        disk::sweep(&self.root.join("images"));
        disk::sweep(&self.root.join("devices"));
        let mut state = self.read_state(device)?.unwrap_or(DeviceState {
            format: FORMAT,
            current: 0,
            generations: Vec::new(),
        });
        let (mut firmware, mut kernels) = match state.generation() {
            Some(now) => (now.firmware.clone(), now.kernels.clone()),
            None => (None, None),
        };
        for image in images {
            let path = self.image_path(&image.sha256);
            let io = io_error("writing", &path, OLD_KEPT);
            disk::replace(&path, image.bytes(), self.write).map_err(io)?;
            let slot = match image.kind {
                ImageKind::Kernels | ImageKind::Aicore => &mut kernels,
                ImageKind::Qemu | ImageKind::Cann => &mut firmware,
            };
            *slot = Some(Entry {
                sha256: image.sha256.clone(),
                build_id: image.build_id.clone(),
                name: image.name.clone(),
                bytes: image.bytes().len() as u64,
            });
        }
        let number = state.generations.last().map_or(0, |last| last.number).saturating_add(1);
        let flashed_at_s = seconds_since_1970();
        let before = state.current;
        let made = Generation { number, before, flashed_at_s, firmware, kernels };
        state.generations.push(made.clone());
        state.current = number;
        let surplus = state.generations.len().saturating_sub(KEPT);
        state.generations.drain(..surplus);
        self.write_state(device, &state)?;
        self.remove_unnamed();
        Ok(made)
    }

    /// Makes the generation before the current one current again.
    ///
    /// # Errors
    /// `NothingFlashed`, `NothingBefore`; `Io`: the device still has what it had.
    pub fn rollback(&self, device: FlashDevice) -> Result<Generation, StoreError> {
        let nothing = || StoreError::NothingFlashed { device, what: "image" };
        if !self.root.is_dir() {
            return Err(nothing());
        }
        let _lock = self.lock(Sharing::Exclusive)?;
        let mut state = self.read_state(device)?.ok_or_else(nothing)?;
        let now = state.generation().ok_or_else(nothing)?;
        let before = state.numbered(now.before).cloned();
        let before = before.ok_or(StoreError::NothingBefore { device })?;
        // What is damaged is no way back.
        for entry in [&before.firmware, &before.kernels].into_iter().flatten() {
            self.load_entry(entry)?;
        }
        state.current = before.number;
        self.write_state(device, &state)?;
        Ok(before)
    }

    /// What a device has; `None`: nothing was ever flashed.
    ///
    /// # Errors
    /// `Io`, `State`.
    pub fn state(&self, device: FlashDevice) -> Result<Option<DeviceState>, StoreError> {
        self.read_state(device)
    }

    /// The images that a device has, checked again; `None`: nothing was ever flashed.
    ///
    /// # Errors
    /// `Io`, `State`; `Image`: damaged since, or of another release than this host.
    pub fn load(&self, device: FlashDevice) -> Result<Option<Flashed>, StoreError> {
        if !self.root.is_dir() {
            return Ok(None);
        }
        let _lock = self.lock(Sharing::Shared)?;
        let Some(state) = self.read_state(device)? else { return Ok(None) };
        let Some(now) = state.generation() else { return Ok(None) };
        let load = |entry: &Option<Entry>| -> Result<Option<Image>, StoreError> {
            let image = entry.as_ref().map(|entry| self.load_entry(entry)).transpose()?;
            if let Some(image) = &image {
                image.verify()?;
                image.suits(device)?;
            }
            Ok(image)
        };
        let (firmware, kernels) = (load(&now.firmware)?, load(&now.kernels)?);
        Ok(Some(Flashed { generation: now.number, firmware, kernels }))
    }

    /// Firmware and kernels of a device that has both.
    ///
    /// # Errors
    /// `NothingFlashed`: one of them is missing. As [`Store::load`].
    pub fn load_both(&self, device: FlashDevice) -> Result<(Image, Image), StoreError> {
        let flashed = self.load(device)?;
        let (firmware, kernels) = flashed.map_or((None, None), |one| (one.firmware, one.kernels));
        let missing = |what| StoreError::NothingFlashed { device, what };
        Ok((firmware.ok_or(missing("firmware"))?, kernels.ok_or(missing("kernels"))?))
    }

    fn load_entry(&self, entry: &Entry) -> Result<Image, StoreError> {
        let path = self.image_path(&entry.sha256);
        let bytes = fs::read(&path).map_err(io_error("reading", &path, "flash the image again"))?;
        let found = seal::sha256(&bytes);
        if found != entry.sha256 {
            let expected = entry.sha256.clone();
            return Err(ImageError::Stored { path, found, expected }.into());
        }
        Ok(Image::parse(entry.name.clone(), bytes)?)
    }

    fn read_state(&self, device: FlashDevice) -> Result<Option<DeviceState>, StoreError> {
        let path = self.state_path(device);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("reading", &path, NOT_CHANGED)(error)),
        };
        let damaged = |what: String| StoreError::State { path: path.clone(), what };
        let state: DeviceState =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if state.format != FORMAT {
            return Err(damaged(format!("format {} is not known here", state.format)));
        }
        // Names of files are made of it.
        let is_hash = |entry: &Entry| {
            entry.sha256.len() == 64 && entry.sha256.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if let Some(entry) = named(&state).find(|entry| !is_hash(entry)) {
            return Err(damaged(format!("{:?} is no SHA-256", entry.sha256)));
        }
        Ok(Some(state))
    }

    fn write_state(&self, device: FlashDevice, state: &DeviceState) -> Result<(), StoreError> {
        let path = self.state_path(device);
        let text = serde_json::to_string_pretty(state)
            .map_err(|error| StoreError::State { path: path.clone(), what: error.to_string() })?;
        disk::replace(&path, text.as_bytes(), self.write)
            .map_err(io_error("writing", &path, OLD_KEPT))
    }

    /// Removes images that no generation of any device names.
    fn remove_unnamed(&self) {
        let mut names = BTreeSet::new();
        for device in FlashDevice::ALL {
            match self.read_state(*device) {
                Ok(Some(state)) => {
                    names.extend(named(&state).map(|entry| self.image_path(&entry.sha256)));
                }
                Ok(None) => {}
                // Whatever a damaged file names is kept.
                Err(_) => return,
            }
        }
        let Ok(files) = fs::read_dir(self.root.join("images")) else { return };
        for file in files.flatten().filter(|file| !names.contains(&file.path())) {
            // It costs a little room, no more.
            let _ = fs::remove_file(file.path());
        }
    }

    fn make_folders(&self) -> Result<(), StoreError> {
        for folder in ["images", "devices"] {
            let path = self.root.join(folder);
            fs::create_dir_all(&path).map_err(io_error("making the folder", &path, OLD_KEPT))?;
        }
        Ok(())
    }

    fn lock(&self, sharing: Sharing) -> Result<Lock, StoreError> {
        let path = self.root.join("lock");
        Lock::take(&path, sharing).map_err(io_error("locking", &path, NOT_CHANGED))
    }

    fn image_path(&self, sha256: &str) -> PathBuf {
        self.root.join("images").join(format!("{sha256}.elf"))
    }

    fn state_path(&self, device: FlashDevice) -> PathBuf {
        self.root.join("devices").join(format!("{}.json", device.name()))
    }
}

fn named(state: &DeviceState) -> impl Iterator<Item = &Entry> {
    state.generations.iter().flat_map(|one| one.firmware.iter().chain(&one.kernels))
}

fn io_error(
    what: &'static str,
    path: &Path,
    kept: &'static str,
) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.to_path_buf();
    move |source| StoreError::Io { what, path, source, kept }
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
