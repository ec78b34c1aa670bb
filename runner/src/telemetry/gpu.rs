//! The GPUs of this host, asked through NVML, which is loaded at run time: without the library or without a GPU there
//! is nothing to ask, and that is a plain case.

use std::ffi::{OsStr, OsString};

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use plimsoll_domain::testbed;

/// The GPUs that somebody wants to know about.
#[derive(Debug)]
pub struct Gpus {
    nvml: Nvml,
    gpus: Vec<Gpu>,
}

/// One GPU's figures at one moment. What it does not tell, or cannot tell because it was lost, is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuSample {
    /// NVML's number: the order on the PCI bus.
    pub index: u32,
    pub uuid: Option<String>,
    /// Share of the last sample period in which a kernel ran, 0 to 1.
    pub utilisation: Option<f64>,
    /// Bytes that processes have taken, without what the driver reserves.
    pub memory_used: Option<u64>,
    pub memory_total: Option<u64>,
}

/// Why a host with GPUs does not tell about them.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    #[error("the GPUs cannot be asked: {0}")]
    Nvml(#[from] NvmlError),
    #[error("there is no GPU {wanted:?} here; there are {here}")]
    Unknown { wanted: String, here: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Gpu {
    index: u32,
    uuid: Option<String>,
}

/// The library's own name; the one without the number belongs to the developers' package.
const LIBRARY: &str = "libnvidia-ml.so.1";
/// Names another library.
const LIBRARY_VARIABLE: &str = "PLIMSOLL_NVML";

impl Gpus {
    /// The GPUs of these indices or UUIDs (or beginnings of one). Without a selection those that `CUDA_VISIBLE_DEVICES`
    /// leaves visible, else all. `None`: no NVML here, or no GPU.
    ///
    /// # Errors
    /// The driver is there and does not answer, or a GPU is named that is not here.
    pub fn open(selection: &[String]) -> Result<Option<Self>, GpuError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        Self::of_library(variable(LIBRARY_VARIABLE), visible.as_deref(), selection)
    }

    fn of_library(
        library: Option<OsString>,
        visible: Option<&str>,
        selection: &[String],
    ) -> Result<Option<Self>, GpuError> {
        let named = library.is_some();
        let path = library.as_deref().unwrap_or(OsStr::new(LIBRARY));
        let nvml = match Nvml::builder().lib_path(path).init() {
            Ok(nvml) => nvml,
            Err(NvmlError::LibloadingError(_)) if !named => return Ok(None),
            Err(NvmlError::DriverNotLoaded | NvmlError::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let all: Vec<Gpu> = (0..nvml.device_count()?)
            .map(|index| Gpu { index, uuid: nvml.device_by_index(index).and_then(|device| device.uuid()).ok() })
            .collect();
        let gpus = match (selection, visible) {
            ([], None) => all,
            ([], Some(visible)) => visible_to_cuda(&all, visible),
            (wanted, _) => wanted.iter().map(|wanted| named_gpu(&all, wanted)).collect::<Result<_, _>>()?,
        };
        Ok((!gpus.is_empty()).then_some(Self { nvml, gpus }))
    }

    /// Asks each of them now.
    pub fn sample(&self) -> Vec<GpuSample> {
        self.gpus.iter().map(|gpu| self.ask(gpu)).collect()
    }

    /// What the testbed's fingerprint holds of them.
    pub fn facts(&self) -> Option<testbed::Gpu> {
        let mut models: Vec<String> = Vec::new();
        for model in self.gpus.iter().filter_map(|gpu| self.device(gpu).ok()?.name().ok()) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        let memory = self.sample().into_iter().map(|sample| sample.memory_total).min().flatten();
        Some(testbed::Gpu {
            model: (!models.is_empty()).then(|| models.join(" + "))?,
            count: u32::try_from(self.gpus.len()).ok()?,
            memory_gib: memory.map(|bytes| (bytes as f64 / f64::from(1 << 30)).round() as u32),
            driver: self.nvml.sys_driver_version().ok(),
        })
    }

    fn ask(&self, gpu: &Gpu) -> GpuSample {
        let device = self.device(gpu).ok();
        let utilisation = device.as_ref().and_then(|device| device.utilization_rates().ok());
        let memory = device.as_ref().and_then(|device| device.memory_info().ok());
        GpuSample {
            index: gpu.index,
            uuid: gpu.uuid.clone(),
            utilisation: utilisation.map(|rates| f64::from(rates.gpu) / 100.0).filter(|share| *share <= 1.0),
            memory_used: memory.as_ref().map(|memory| memory.used),
            memory_total: memory.map(|memory| memory.total),
        }
    }

    /// By its UUID, since the others' numbers may change when one is lost.
    fn device(&self, gpu: &Gpu) -> Result<Device<'_>, NvmlError> {
        match &gpu.uuid {
            Some(uuid) => self.nvml.device_by_uuid(uuid.as_str()),
            None => self.nvml.device_by_index(gpu.index),
        }
    }
}

/// As CUDA reads its variable: what follows the first name that is none is hidden too. Its numbers are taken to be in
/// the order of the PCI bus.
fn visible_to_cuda(all: &[Gpu], visible: &str) -> Vec<Gpu> {
    let mut gpus: Vec<Gpu> = Vec::new();
    for gpu in visible.split(',').map_while(|name| find(all, name.trim())) {
        if !gpus.contains(gpu) {
            gpus.push(gpu.clone());
        }
    }
    gpus
}

fn named_gpu(all: &[Gpu], wanted: &str) -> Result<Gpu, GpuError> {
    find(all, wanted.trim()).cloned().ok_or_else(|| {
        let name = |gpu: &Gpu| format!("{} ({})", gpu.index, gpu.uuid.as_deref().unwrap_or("no UUID"));
        let here: Vec<String> = all.iter().map(name).collect();
        GpuError::Unknown {
            wanted: wanted.to_owned(),
            here: if here.is_empty() { "none".into() } else { here.join(", ") },
        }
    })
}

/// A GPU by its index, its UUID or a beginning of it that only one has.
fn find<'a>(all: &'a [Gpu], name: &str) -> Option<&'a Gpu> {
    if let Ok(index) = name.parse::<u32>() {
        return all.iter().find(|gpu| gpu.index == index);
    }
    let begins = |gpu: &&Gpu| gpu.uuid.as_deref().is_some_and(|uuid| uuid.starts_with(name));
    let mut found = all.iter().filter(begins);
    found.next().filter(|_| !name.is_empty() && found.next().is_none())
}

#[cfg(test)]
mod tests;
