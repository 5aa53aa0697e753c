//! A decoder that panics on a strange file must not take the program down.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`; a panic inside becomes `None`, without the usual message on standard error.
/// Every other panic is reported as before.
pub fn contain<T>(body: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let was_quiet = QUIET.replace(true);
    // The caller throws away what the closure may have left half done.
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    QUIET.set(was_quiet);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_contained_and_the_next_call_works() {
        assert_eq!(contain(|| 1), Some(1));
        assert_eq!(contain(|| -> i32 { panic!("a strange file") }), None);
        assert_eq!(contain(|| 2), Some(2));
    }
}
