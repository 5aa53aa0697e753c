//! What a run takes of the machine.

/// The most memory that this process has held so far, in bytes, where the system tells it (Linux).
pub fn peak_memory() -> Option<u64> {
    std::fs::read_to_string("/proc/self/status").ok().as_deref().and_then(high_water_mark)
}

/// What decides how sums are rounded: the instruction set that loops are compiled for, and the caches by which matrix products are cut
/// into blocks, where the system tells them (Linux). Machines of one kind give the same bits.
pub fn machine_kind() -> String {
    #[cfg(target_arch = "x86_64")]
    let set = {
        let has = |all: [bool; 2]| all.into_iter().all(|one| one);
        use std::arch::is_x86_feature_detected as is;
        match () {
            () if has([is!("avx512f"), is!("avx512vl")]) => " with AVX-512",
            () if has([is!("avx2"), is!("fma")]) => " with AVX2",
            () => "",
        }
    };
    #[cfg(not(target_arch = "x86_64"))]
    let set = "";
    let cache = |index: usize| {
        let read = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            std::fs::read_to_string(path).map(|text| text.trim().to_owned())
        };
        Some((read("level").ok()?, read("type").ok()?, read("size").ok()?, read("ways_of_associativity").ok()?))
    };
    let caches = (0..8).map_while(cache).filter(|(level, kind, ..)| kind != "Instruction" && level.as_str() < "3");
    let caches: String = caches.map(|(level, _, size, ways)| format!(", L{level} {size}/{ways}")).collect();
    format!("{}{set}{caches}", std::env::consts::ARCH)
}

/// `VmHWM` of a `/proc/PID/status`.
fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Memory that can still be had, in bytes, where the system tells it (Linux): of the machine, or of the container.
pub fn available_memory() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(available)?;
    let read = |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok();
    let container = (|| free_of(&read("memory.max")?, &read("memory.current")?, &read("memory.stat")?))();
    Some(container.map_or(machine, |container| container.min(machine)))
}

/// `MemAvailable` of `/proc/meminfo`.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// What is left of a control group's limit; cached files count as used there but make room. `None` without a limit.
fn free_of(max: &str, current: &str, stat: &str) -> Option<u64> {
    let (max, current): (u64, u64) = (max.trim().parse().ok()?, current.trim().parse().ok()?);
    let cached = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse().ok()).unwrap_or(0);
    Some(max.saturating_sub(current.saturating_sub(cached)))
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

    #[test]
    fn available_memory_is_that_of_the_machine_or_its_container() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
        assert_eq!(free_of("1000\n", "900\n", "anon 5\ninactive_file 300\n"), Some(400));
        assert_eq!(free_of("max\n", "900\n", ""), None);
    }

    #[test]
    fn a_machine_is_always_of_the_same_kind() {
        let kind = machine_kind();
        assert!(kind.starts_with(std::env::consts::ARCH) && kind.len() < 200 && !kind.contains('\n'), "{kind}");
        assert_eq!(kind, machine_kind());
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
