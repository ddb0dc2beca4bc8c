//! Which cores a device has in service, and where their control registers are. Both come from the driver; nothing is guessed.

use std::time::Duration;
use std::{env, ptr, thread};

use pto_abi::launch_words::{CLUSTER_STRIDE, CorePosition};

use super::error::A2a3Error;
use super::layouts::{MapIn, MapOut};
use super::port::Port;

/// Attributes of `aclrtGetDeviceInfo`.
const CUBE_CORES: i32 = 102;
const VECTOR_CORES: i32 = 201;
/// What the driver is asked for.
const MODULE_AICPU: i32 = 1;
const MODULE_AICORE: i32 = 4;
const OCCUPY: i32 = 8;
const REGISTERS_OF_AICORES: u32 = 2;
/// Clusters of a die, in service or not.
const CLUSTERS_OF_A_DIE: u32 = 25;
/// Clusters that a run uses at most.
const MOST_CLUSTERS: u32 = 24;
/// While another process is just given the registers, the driver refuses them.
const PERMISSION: i32 = 13;
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(50);
const VISIBLE: &str = "ASCEND_RT_VISIBLE_DEVICES";

/// The cores of a device.
#[derive(Clone, Debug)]
pub(crate) struct Cores {
    /// Clusters of one AIC and two AIVs, by their index on the die.
    pub(crate) clusters: Vec<u16>,
    /// AICPUs that run our code.
    pub(crate) aicpus: u32,
    /// Where AICPU sees the window of control registers.
    pub(crate) registers: u64,
    /// Size of the register window in bytes.
    pub(crate) register_bytes: u64,
}

impl Cores {
    /// Asks the driver; `most`: clusters that the user wants.
    pub(crate) fn find(port: &Port, most: Option<u32>) -> Result<Self, A2a3Error> {
        let device = hal_device(port.device(), env::var(VISIBLE).ok().as_deref())?;
        let count = count(port)?.min(most.unwrap_or(MOST_CLUSTERS));
        let mask = core_mask(port, device)?;
        let in_service = (0..CLUSTERS_OF_A_DIE).filter(|cluster| mask & (1 << cluster) != 0);
        let clusters: Vec<u16> =
            in_service.take(count as usize).filter_map(|one| u16::try_from(one).ok()).collect();
        if clusters.len() < count as usize || clusters.is_empty() {
            let what = format!(
                "CANN says that {count} clusters of cores can be used, and the driver's mask {mask:#x} has {}. \
                 Check with `npu-smi info` that the device is healthy",
                clusters.len()
            );
            return Err(A2a3Error::Unfit { device: port.device(), what });
        }
        let aicpus = aicpu_mask(port, device)?.count_ones();
        let window = registers(port, device)?;
        let bytes = match window.bytes {
            0 => u64::from(CLUSTERS_OF_A_DIE) * CLUSTER_STRIDE,
            bytes => bytes,
        };
        Ok(Self { clusters, aicpus, registers: window.address, register_bytes: bytes })
    }

    /// Where each worker's registers are: all AICs, then all AIVs.
    pub(crate) fn positions(&self) -> Vec<CorePosition> {
        let at = |cluster: &u16, sub| CorePosition { cluster: *cluster, sub };
        let cubes = self.clusters.iter().map(|cluster| at(cluster, 0));
        let vectors = self.clusters.iter().flat_map(|cluster| [at(cluster, 1), at(cluster, 2)]);
        cubes.chain(vectors).collect()
    }
}

/// Clusters that can be used.
fn count(port: &Port) -> Result<u32, A2a3Error> {
    let fact = |which| {
        let mut value = 0_i64;
        // SAFETY: a place for a number.
        let code = unsafe { (port.calls.device_fact)(port.device(), which, &raw mut value) };
        port.check("counting the cores", "aclrtGetDeviceInfo", code)?;
        Ok::<u32, A2a3Error>(u32::try_from(value).unwrap_or(0))
    };
    Ok(fact(CUBE_CORES)?.min(fact(VECTOR_CORES)? / 2).min(MOST_CLUSTERS))
}

fn core_mask(port: &Port, device: u32) -> Result<u64, A2a3Error> {
    let mut words = [0_u64; 2];
    let mut bytes = i32::try_from(size_of_val(&words)).unwrap_or(i32::MAX);
    let call = port.calls.hal_fact_by_buffer;
    // SAFETY: a buffer of this many bytes, and a place for the number of those that were written.
    let code =
        unsafe { call(device, MODULE_AICORE, OCCUPY, words.as_mut_ptr().cast(), &raw mut bytes) };
    port.check("asking which cores are in service", "halGetDeviceInfoByBuff", code)?;
    Ok(words[0])
}

fn aicpu_mask(port: &Port, device: u32) -> Result<u64, A2a3Error> {
    let mut mask = 0_i64;
    // SAFETY: a place for a number.
    let code = unsafe { (port.calls.hal_fact)(device, MODULE_AICPU, OCCUPY, &raw mut mask) };
    port.check("asking which AICPUs are in service", "halGetDeviceInfo", code)?;
    Ok(mask.cast_unsigned())
}

fn registers(port: &Port, device: u32) -> Result<MapOut, A2a3Error> {
    let mut asked = MapIn { kind: REGISTERS_OF_AICORES, device };
    for attempt in 1.. {
        let mut window = MapOut::default();
        let (input, output) = (&raw mut asked, &raw mut window);
        let call = port.calls.memory_control;
        // SAFETY: both structures are as the driver knows them; the size that is written is not asked for.
        let code = unsafe { call(0, input, size_of::<MapIn>(), output, ptr::null_mut()) };
        if code == PERMISSION && attempt < TRIES {
            thread::sleep(PAUSE);
            continue;
        }
        port.check("mapping the control registers", "halMemCtl", code)?;
        if window.address == 0 {
            let what = "the driver gave no address for the control registers. Look into its log";
            return Err(A2a3Error::Unfit { device: port.device(), what: what.to_owned() });
        }
        return Ok(window);
    }
    Ok(MapOut::default())
}

/// The driver's id of a device: `ASCEND_RT_VISIBLE_DEVICES` renumbers only those of `aclrt*`.
fn hal_device(device: u32, visible: Option<&str>) -> Result<u32, A2a3Error> {
    let Some(value) = visible.filter(|value| !value.trim().is_empty()) else { return Ok(device) };
    let refused = || A2a3Error::Visible { value: value.to_owned(), device };
    let ids = value.split(',').map(|word| word.trim().parse::<u32>());
    let ids: Vec<u32> = ids.collect::<Result<_, _>>().map_err(|_| refused())?;
    ids.get(device as usize).copied().ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::{Cores, hal_device};
    use pto_abi::launch_words::CorePosition;

    #[test]
    fn the_driver_counts_all_devices() {
        assert_eq!(hal_device(1, None).unwrap(), 1);
        assert_eq!(hal_device(1, Some("")).unwrap(), 1);
        assert_eq!(hal_device(1, Some("4, 6,7")).unwrap(), 6);
        for (device, wrong) in [(3, "4,6,7"), (0, "4,x"), (0, "-1"), (1, "2,,3")] {
            let text = hal_device(device, Some(wrong)).unwrap_err().to_string();
            assert!(text.contains(wrong), "{text}");
        }
    }

    #[test]
    fn workers_are_cubes_then_vectors_of_the_clusters_in_service() {
        let cores = Cores { clusters: vec![0, 2], aicpus: 6, registers: 1, register_bytes: 1 };
        let at = |cluster, sub| CorePosition { cluster, sub };
        let expected = [at(0, 0), at(2, 0), at(0, 1), at(0, 2), at(2, 1), at(2, 2)];
        assert_eq!(cores.positions(), expected);
    }
}
