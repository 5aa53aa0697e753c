//! Where things that come with the program may be.

use std::path::{Path, PathBuf};

/// The folder of the running program.
pub fn program_folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.canonicalize().unwrap_or(program).parent()?.to_owned())
}

/// The program's folder and the current one, each followed by the folders that hold it. A program that was built
/// in the repository finds the repository's own folders this way.
pub fn upwards() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for start in [program_folder(), std::env::current_dir().ok()].into_iter().flatten() {
        for folder in start.ancestors() {
            if !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_owned());
            }
        }
    }
    folders
}

/// The files of a folder, sorted by name; none when there is no such folder.
pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}
