//! What a run takes of the machine.

/// The most memory that this process has held so far, in bytes, where the system tells it (Linux).
pub fn peak_memory() -> Option<u64> {
    std::fs::read_to_string("/proc/self/status").ok().as_deref().and_then(high_water_mark)
}

/// `VmHWM` of a `/proc/PID/status`.
fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_found_among_the_lines() {
        let status =
            "Name:\tdtkc-train\nVmPeak:\t  999999 kB\nVmSize:\t  888 kB\nVmHWM:\t   12345 kB\nVmRSS:\t 17 kB\n";
        assert_eq!(high_water_mark(status), Some(12345 * 1024));
        assert_eq!(high_water_mark("VmPeak:\t 1 kB\n"), None);
        assert_eq!(high_water_mark("VmHWM:\t many\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_that_was_held_stays_counted() {
        let held = vec![1u8; 64 << 20];
        let touched: u64 = held.iter().step_by(4096).map(|&byte| u64::from(byte)).sum();
        drop(held);
        assert!(peak_memory() >= Some(touched * 4096), "{:?}", peak_memory());
    }
}
