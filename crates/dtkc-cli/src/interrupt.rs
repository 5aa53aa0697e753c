//! Ctrl-C, SIGTERM and the wish of a parent process as a flag that long work looks at between two steps.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C (or SIGTERM) only sets the flag, so that work can stop at a safe place;
/// the second ends the process at once.
pub fn install() {
    // Installing twice is harmless: the first handler stays.
    let _ = ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        eprintln!("\nstopping at the next safe place (Ctrl-C again to stop at once)");
    });
}

/// From now on the end of standard input asks to stop, too: for a process whose parent holds the other end, so that it stops
/// when the parent says so or is no more. Unlike a second Ctrl-C, it never ends the process at once.
pub fn stop_with_input() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        REQUESTED.store(true, Ordering::SeqCst);
    });
}

/// True once the user has asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
