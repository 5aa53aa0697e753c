//! A Mac's linker must be told that the interpreter's symbols come later.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
