//! NumPy files for the tests, in a folder that goes away.

use std::fs;
use std::path::PathBuf;

use npyz::{AutoSerialize, NpyFile, Order, WriterBuilder};
use tempfile::TempDir;

/// A folder of files.
pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// `name.npy` in the folder, whether it exists or not.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.npy"))
    }

    /// The value of an option: `name=path`.
    pub(crate) fn option(&self, name: &str) -> String {
        format!("{name}={}", self.path(name).display())
    }

    /// Writes a tensor in C order.
    pub(crate) fn put<T: AutoSerialize + Copy>(&self, name: &str, shape: &[u64], values: &[T]) {
        self.put_in(Order::C, name, shape, values);
    }

    /// Writes a tensor in the given order.
    pub(crate) fn put_in<T>(&self, order: Order, name: &str, shape: &[u64], values: &[T])
    where
        T: AutoSerialize + Copy,
    {
        let mut bytes = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(shape).order(order);
        let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
        writer.extend(values.iter().copied()).unwrap();
        writer.finish().unwrap();
        self.put_bytes(name, &bytes);
    }

    /// Writes anything.
    pub(crate) fn put_bytes(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Shape and values of a file.
    pub(crate) fn get(&self, name: &str) -> (Vec<u64>, Vec<f32>) {
        let bytes = self.bytes(name);
        let npy = NpyFile::new(&bytes[..]).unwrap();
        (npy.shape().to_vec(), npy.into_vec().unwrap())
    }
}
