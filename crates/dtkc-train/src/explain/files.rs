//! The folder of explanations: arrays, pictures and a table.
//!
//! | file | what |
//! |---|---|
//! | `maps.npy` | f32 `[n, height, width, channels]`: what every value of a scaled image adds |
//! | `images.npy` | u8, the same shape: the images as the model takes them |
//! | `maps.h5` | both instead, with clusters and values, where HDF5 is asked for |
//! | `explanations.csv` | a row for each image: cluster, what the network says, what the map adds up to |
//! | `00000.png`, .. | the image beside its map |
//! | `sheet.png` | the first hundred of these, cluster by cluster |

use std::path::{Path, PathBuf};

use dtkc_item::ImageShape;

use super::Explanation;
use super::arrays::{ArrayFormat, Arrays, remove_others};
use super::picture::{self, Picture};
use crate::compare::files::csv_text;
use crate::error::TrainError;

const TABLE: &str = "explanations.csv";
const SHEET: &str = "sheet.png";
/// Pictures on the sheet.
const SHEET_PICTURES: usize = 100;
const SHEET_COLUMNS: usize = 10;

/// A folder of explanations that is being written. Arrays and table get their names at the end.
pub struct Folder {
    root: PathBuf,
    shape: ImageShape,
    arrays: Arrays,
    table: String,
    /// Cluster and picture.
    sheet: Vec<(usize, Picture)>,
    written: usize,
}

impl Folder {
    /// Makes the folder for `count` images of `shape`. It must be new or empty unless `force` says that explanations in it
    /// may be replaced.
    pub fn create(
        root: &Path,
        shape: ImageShape,
        count: usize,
        format: ArrayFormat,
        force: bool,
    ) -> Result<Self, TrainError> {
        if root.is_file() {
            return Err(TrainError::NotAFolder { path: root.to_owned() });
        }
        fs_err::create_dir_all(root)?;
        let mut old = Vec::new();
        for entry in fs_err::read_dir(root)? {
            old.push(entry?);
        }
        if !force && !old.is_empty() {
            let root = root.display();
            let text =
                format!("{root} is not empty; choose a new folder for --out, or add --force to replace what is there");
            return Err(TrainError::Setting(text));
        }
        // Pictures of more images than there are now would be taken for this run's.
        for entry in old.iter().filter(|entry| is_picture(&entry.file_name().to_string_lossy())) {
            dtkc_files::remove(&entry.path())?;
        }
        remove_others(root, format)?;
        let dims = [count, shape.height, shape.width, shape.channels];
        Ok(Self {
            root: root.to_owned(),
            shape,
            arrays: Arrays::create(root, format, dims)?,
            table: "index,path,assigned,cluster,value,expected,sum,error,picture\n".into(),
            sheet: Vec::new(),
            written: 0,
        })
    }

    /// Adds the next image.
    pub fn add(&mut self, name: &str, image: &[u8], explanation: &Explanation) -> Result<(), TrainError> {
        self.arrays.add(self.written, image, explanation)?;
        let overlay = picture::overlay(image, &explanation.map, self.shape);
        let file = format!("{:05}.png", self.written);
        dtkc_files::write(&self.root.join(&file), &overlay.png()?)?;
        let Explanation { assigned, cluster, value, expected, .. } = explanation;
        let (sum, error, index) = (explanation.sum(), explanation.error(), self.written);
        self.table +=
            &format!("{index},{},{assigned},{cluster},{value},{expected},{sum},{error},{file}\n", csv_text(name));
        if self.sheet.len() < SHEET_PICTURES {
            self.sheet.push((explanation.cluster, overlay));
        }
        self.written += 1;
        Ok(())
    }

    /// Gives everything its name.
    pub fn finish(mut self) -> Result<(), TrainError> {
        self.sheet.sort_by_key(|(cluster, _)| *cluster);
        let pictures: Vec<Picture> = self.sheet.into_iter().map(|(_, picture)| picture).collect();
        if let Some(sheet) = picture::sheet(&pictures, SHEET_COLUMNS) {
            dtkc_files::write(&self.root.join(SHEET), &sheet.png()?)?;
        }
        self.arrays.finish()?;
        dtkc_files::write(&self.root.join(TABLE), self.table.as_bytes())?;
        Ok(())
    }
}

/// A picture of one image, by its name.
fn is_picture(name: &str) -> bool {
    name.strip_suffix(".png").is_some_and(|stem| stem.len() >= 5 && stem.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SHAPE: ImageShape = ImageShape { height: 2, width: 3, channels: 1 };

    fn explanation() -> Explanation {
        let map = vec![0.5, -0.25, 0.0, 0.0, 0.0, 0.125];
        Explanation { assigned: 2, cluster: 1, value: 0.75, expected: 0.25, map }
    }

    #[test]
    fn a_folder_holds_arrays_pictures_and_a_table() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("new");
        let mut folder = Folder::create(&root, SHAPE, 2, ArrayFormat::Npy, false).unwrap();
        folder.add("=a,b.png", &[1, 2, 3, 4, 5, 6], &explanation()).unwrap();
        folder.add("c.png", &[6; 6], &explanation()).unwrap();
        assert!(!root.join("maps.npy").exists(), "not before everything is there");
        folder.finish().unwrap();
        let maps = std::fs::read(root.join("maps.npy")).unwrap();
        assert_eq!(maps.len(), 128 + 2 * 6 * 4);
        assert_eq!(maps[128..132], 0.5f32.to_le_bytes());
        assert_eq!(std::fs::read(root.join("images.npy")).unwrap()[128..134], [1, 2, 3, 4, 5, 6]);
        let table = std::fs::read_to_string(root.join("explanations.csv")).unwrap();
        let rows: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(rows[0], "0,\"'=a,b.png\",2,1,0.75,0.25,0.375,-0.125,00000.png");
        assert!(rows.len() == 2 && root.join("00001.png").exists() && root.join("sheet.png").exists());

        let refused = Folder::create(&root, SHAPE, 1, ArrayFormat::Npy, false).err().unwrap().to_string();
        assert!(refused.contains("is not empty") && refused.contains("--force"), "{refused}");
        let mut again = Folder::create(&root, SHAPE, 1, ArrayFormat::Hdf5, true).unwrap();
        again.add("c.png", &[6; 6], &explanation()).unwrap();
        again.finish().unwrap();
        assert!(root.join("00000.png").exists() && !root.join("00001.png").exists(), "no picture of the run before");
        assert!(root.join("maps.h5").exists() && !root.join("maps.npy").exists(), "no array of the run before");
        assert!(Folder::create(&root.join("sheet.png"), SHAPE, 1, ArrayFormat::Npy, true).is_err());
    }
}
