//! Where to train. The device is always chosen by name: burn's own default prefers a GPU and fails late when its
//! driver is missing.

use std::fmt;
use std::str::FromStr;

use burn::tensor::{Device, DeviceType};
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// A kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The processor, through burn's flex backend and our own operations. Always there.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// Any GPU through wgpu, on the graphics API that wgpu chooses.
    Wgpu,
    /// A GPU through Vulkan.
    Vulkan,
    /// A GPU through Metal.
    Metal,
    /// An AMD GPU.
    Rocm,
}

impl Kind {
    /// Every kind, in the order in which they are listed.
    pub const ALL: [Self; 6] = [Self::Cpu, Self::Cuda, Self::Wgpu, Self::Vulkan, Self::Metal, Self::Rocm];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Wgpu => "wgpu",
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
            Self::Rocm => "rocm",
        }
    }

    /// Burn's name, when this build has it.
    fn device_type(self) -> Option<DeviceType> {
        match self {
            Self::Cpu => Some(DeviceType::Flex),
            #[cfg(feature = "cuda")]
            Self::Cuda => Some(DeviceType::Cuda),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Some(DeviceType::Wgpu),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Some(DeviceType::Vulkan),
            #[cfg(feature = "metal")]
            Self::Metal => Some(DeviceType::Metal),
            #[cfg(feature = "rocm")]
            Self::Rocm => Some(DeviceType::Rocm),
            #[allow(unreachable_patterns)] // Every kind may be compiled in.
            _ => None,
        }
    }

    /// Whether this build has it.
    pub fn compiled(self) -> bool {
        self.device_type().is_some()
    }

    /// The devices of this kind on this machine. A driver that is missing may make its backend panic; that
    /// counts as no device.
    pub fn present(self) -> Vec<Device> {
        let Some(device_type) = self.device_type() else { return Vec::new() };
        quietly(move || Device::enumerate(device_type).into_vec()).unwrap_or_default()
    }
}

/// Runs `body` and turns a panic into `None`, without its message on the terminal.
fn quietly<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::thread::spawn(body).join().ok();
    std::panic::set_hook(hook);
    result
}

/// A device as the user names it: `cpu`, `cuda:1`, `wgpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceName {
    /// Its kind.
    pub kind: Kind,
    /// Which one of them.
    pub index: usize,
}

impl DeviceName {
    /// The processor.
    pub const CPU: Self = Self { kind: Kind::Cpu, index: 0 };

    /// The device itself, or a sentence that lists what there is.
    pub fn open(self) -> Result<Device, TrainError> {
        let error = |cause: String| TrainError::Device { asked: self.to_string(), cause, known: known() };
        if !self.kind.compiled() {
            let name = self.kind.name();
            return Err(error(format!("is not compiled in (build with `--features {name}`)")));
        }
        self.kind.present().into_iter().nth(self.index).ok_or_else(|| error("is not present on this machine".into()))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.index) {
            (kind, 0) => f.write_str(kind.name()),
            (kind, index) => write!(f, "{}:{index}", kind.name()),
        }
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, index) = text.split_once(':').unwrap_or((text, "0"));
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        match (kind, index.parse()) {
            (Some(Kind::Cpu), Ok(1..)) => Err(format!("'{text}' is not a device: there is one cpu")),
            (Some(kind), Ok(index)) => Ok(Self { kind, index }),
            _ => Err(format!("'{text}' is not a device; write cpu, cuda:0, wgpu, vulkan, metal or rocm:0")),
        }
    }
}

impl TryFrom<String> for DeviceName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> Self {
        name.to_string()
    }
}

/// One line of `dtkc-train devices`.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    /// What `--device` takes.
    pub device: String,
    /// Whether this build can use it.
    pub compiled: bool,
    /// Whether this machine has it.
    pub present: bool,
    /// What it is.
    pub description: String,
}

/// Every kind of device, with what of it this build and this machine have.
pub fn list() -> Vec<Listed> {
    let mut lines = Vec::new();
    for kind in Kind::ALL {
        let name = kind.name().to_owned();
        if !kind.compiled() {
            let description = format!("not compiled in; build with --features {name}");
            lines.push(Listed { device: name, compiled: false, present: false, description });
            continue;
        }
        let devices = kind.present();
        if devices.is_empty() {
            let description = "compiled in, but no such device or no driver was found".to_owned();
            lines.push(Listed { device: name, compiled: true, present: false, description });
        }
        for (index, device) in devices.iter().enumerate() {
            let device_name = DeviceName { kind, index }.to_string();
            let description = describe(kind, device);
            lines.push(Listed { device: device_name, compiled: true, present: true, description });
        }
    }
    lines
}

fn describe(kind: Kind, device: &Device) -> String {
    if kind == Kind::Cpu {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        return format!("burn flex with our own operations, {cores} threads");
    }
    #[cfg(any(feature = "cuda", feature = "wgpu", feature = "rocm"))]
    {
        let device = device.clone();
        if let Some(Some(identity)) = quietly(move || device.identity()) {
            return identity.name.to_string();
        }
    }
    format!("{device:?}")
}

fn known() -> String {
    let names: Vec<_> = list().into_iter().filter(|line| line.present).map(|line| line.device).collect();
    names.join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_printed() {
        for name in ["cpu", "cuda", "cuda:1", "wgpu", "vulkan", "metal", "rocm:3"] {
            assert_eq!(name.parse::<DeviceName>().unwrap().to_string(), name);
        }
        assert_eq!("cuda:0".parse::<DeviceName>().unwrap().to_string(), "cuda");
        for bad in ["", "gpu", "cuda:x", "cpu:1", "cuda:-1"] {
            assert!(bad.parse::<DeviceName>().unwrap_err().contains("is not a device"), "{bad}");
        }
    }

    #[test]
    fn the_cpu_is_always_there() {
        DeviceName::CPU.open().unwrap();
        assert!(list().iter().any(|line| line.device == "cpu" && line.present));
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_device_that_is_not_compiled_in_says_how_to_get_it() {
        let error = "cuda:1".parse::<DeviceName>().unwrap().open().unwrap_err().to_string();
        assert!(error.contains("cuda:1") && error.contains("--features cuda") && error.contains("cpu"), "{error}");
    }
}
