//! Where a model runs.

use std::fmt;
use std::str::FromStr;

/// Where a model runs: `cpu`, `cuda`, `cuda:1`, `tensorrt`, `tensorrt:1`, and `tract` in programs built with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// An NVIDIA GPU by its number, through CUDA.
    Cuda(u16),
    /// An NVIDIA GPU by its number, through TensorRT.
    TensorRt(u16),
    /// The processor, without ONNX Runtime: tract, in pure Rust.
    #[cfg(feature = "tract")]
    Tract,
}

impl Device {
    /// The names that can be asked for, for help texts.
    #[cfg(not(feature = "tract"))]
    pub const NAMES: &'static str = "cpu, cuda, cuda:N, tensorrt, tensorrt:N";
    /// The names that can be asked for, for help texts.
    #[cfg(feature = "tract")]
    pub const NAMES: &'static str = "cpu, cuda, cuda:N, tensorrt, tensorrt:N, tract";
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(0) => f.write_str("cuda"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
            Device::TensorRt(0) => f.write_str("tensorrt"),
            Device::TensorRt(number) => write!(f, "tensorrt:{number}"),
            #[cfg(feature = "tract")]
            Device::Tract => f.write_str("tract"),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a device; use one of {}", Self::NAMES);
        let (kind, number) = match text.split_once(':') {
            Some((kind, number)) => (kind, Some(number.parse::<u16>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        match (kind, number) {
            ("cpu", None) => Ok(Device::Cpu),
            ("cuda", number) => Ok(Device::Cuda(number.unwrap_or(0))),
            ("tensorrt", number) => Ok(Device::TensorRt(number.unwrap_or(0))),
            #[cfg(feature = "tract")]
            ("tract", None) => Ok(Device::Tract),
            #[cfg(not(feature = "tract"))]
            ("tract", None) => Err(format!(
                "tract is not part of this program; build it with --features tract, or use one of {}",
                Self::NAMES
            )),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["cpu", "cuda", "cuda:1", "tensorrt", "tensorrt:3"] {
            assert_eq!(name.parse::<Device>().map(|device| device.to_string()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn tract_is_a_device_or_the_error_says_how_to_get_it() {
        match "tract".parse::<Device>() {
            Ok(device) => assert_eq!(device.to_string(), "tract"),
            Err(error) => assert!(error.contains("--features tract") && error.contains("cpu"), "{error}"),
        }
        assert_eq!("tract".parse::<Device>().is_ok(), cfg!(feature = "tract"));
    }

    #[test]
    fn other_names_are_refused_with_the_known_ones() {
        for name in ["", "gpu", "cpu:0", "tract:0", "cuda:", "cuda:x", "cuda:-1", "CPU"] {
            assert!(name.parse::<Device>().is_err_and(|error| error.contains("tensorrt:N")), "{name}");
        }
    }
}
