//! The known sets: where their publishers keep them, and how to tell that they arrived whole.
//!
//! Checksums of gzipped files are those of the content: mirrors pack the same file in different ways.

/// A known set.
#[derive(Debug)]
pub struct KnownSet {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// The files to download.
    pub files: &'static [Remote],
    /// Sets of files, each of which is enough. The first that is there is taken.
    pub local: &'static [Local],
    /// Checks of files that are known but not downloaded.
    pub also: &'static [(&'static str, Check)],
    /// Items in all, where the publisher's files are complete.
    pub count: u64,
    /// Names of the classes, from the number of the first one.
    pub titles: (i64, &'static [&'static str]),
}

/// Files that make up a set.
#[derive(Debug)]
pub struct Local {
    /// Their names; `*` stands for anything.
    pub files: &'static [&'static str],
    /// What they mean by some of their labels, where that is not what they say.
    pub digits: Digits,
}

/// Labels as files have them, and the classes that they mean.
pub type Digits = &'static [(i64, i64)];

/// A file to download.
#[derive(Debug)]
pub struct Remote {
    /// What it is called here.
    pub name: &'static str,
    /// Where it is; the first address that answers is taken.
    pub urls: &'static [&'static str],
    /// What it must be.
    pub check: Check,
    /// Entries to unpack beside it, where it is an archive of data files.
    pub members: &'static [&'static str],
}

/// How a file is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The file itself has this SHA-256.
    File(&'static str),
    /// What is inside the gzip or bzip2 file, or the file if it is not packed, has this SHA-256.
    Content(&'static str),
    /// Nothing is known but that it is at least this long.
    AtLeast(u64),
}

/// The set of that name.
pub fn find(name: &str) -> Option<&'static KnownSet> {
    SETS.iter().find(|set| set.name == name)
}

/// Files that lie below the same addresses, each with its check.
macro_rules! files {
    ($places:tt: $($name:literal is $check:expr),+ $(,)?) => {
        &[$(files!(@one $name, $check, $places)),+]
    };
    (@one $name:literal, $check:expr, [$($place:literal),+]) => {
        Remote { name: $name, urls: &[$(concat!($place, $name)),+], check: $check, members: &[] }
    };
}

/// All known sets.
pub const SETS: &[KnownSet] = &[
    KnownSet {
        name: "mnist",
        title: "MNIST handwritten digits, 28x28 gray",
        files: files![
            [
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/"
            ]:
            "train-images-idx3-ubyte.gz" is Check::Content("ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
            "train-labels-idx1-ubyte.gz" is Check::Content("65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
            "t10k-images-idx3-ubyte.gz" is Check::Content("0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
            "t10k-labels-idx1-ubyte.gz" is Check::Content("ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
        ],
        local: IDX,
        also: &[],
        count: 70_000,
        titles: (0, &[]),
    },
    KnownSet {
        name: "fashion-mnist",
        title: "Fashion-MNIST clothes, 28x28 gray",
        files: files![
            [
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
            ]:
            "train-images-idx3-ubyte.gz" is Check::Content("c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
            "train-labels-idx1-ubyte.gz" is Check::Content("bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
            "t10k-images-idx3-ubyte.gz" is Check::Content("5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
            "t10k-labels-idx1-ubyte.gz" is Check::Content("0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
        ],
        local: IDX,
        also: &[],
        count: 70_000,
        titles: (
            0,
            &["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"],
        ),
    },
    KnownSet {
        name: "usps",
        title: "USPS handwritten digits, 16x16 gray",
        files: files![
            ["https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"]:
            "usps.bz2" is Check::File("3771e9dd6ba685185f89867b6e249233dd74652389f263963b3b741e994b034f"),
            "usps.t.bz2" is Check::File("a9c0164e797d60142a50604917f0baa604f326e9a689698763793fa5d12ffc4e"),
        ],
        local: &[
            Local { files: &["usps.bz2", "usps.t.bz2"], digits: FROM_ONE },
            plain(&["usps.h5"]),
            Local { files: &["usps", "usps.t"], digits: FROM_ONE },
        ],
        also: &[("usps.h5", Check::File("734f88c541104a956d88be2c95d03b4a463ffd74ccc2ba9c80841fb98e3fcb36"))],
        count: 9_298,
        titles: (0, &[]),
    },
    KnownSet {
        name: "svhn",
        title: "SVHN street view house numbers, 32x32 colour",
        files: files![
            ["http://ufldl.stanford.edu/housenumbers/"]:
            "train_32x32.mat" is Check::File("435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"),
            "test_32x32.mat" is Check::File("cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"),
        ],
        local: &[
            Local { files: &["train_32x32.mat", "test_32x32.mat"], digits: TEN_IS_ZERO },
            Local { files: &["train_32x32*.mat"], digits: TEN_IS_ZERO },
        ],
        also: &[],
        count: 99_289,
        titles: (0, &[]),
    },
    KnownSet {
        name: "coil-100",
        title: "COIL-100 objects, 128x128 colour",
        files: files![
            [
                "http://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-100/",
                "https://cave.cs.columbia.edu/old/databases/SLAM_coil-20_coil-100/coil-100/"
            ]:
            "coil-100.zip" is Check::File("fcb4b8b01c0778f416d8d7a09f45082c4f7075cc74743dcddd5c44307bd4afe7"),
        ],
        local: &[plain(&["coil-100.zip"]), plain(&["coil-100*.zip"]), plain(&["coil-100"])],
        also: &[],
        count: 7_200,
        titles: (0, &[]),
    },
    KnownSet {
        name: "character-trajectories",
        title: "Character Trajectories, pen movements of 20 letters in 3 dimensions",
        files: &[Remote {
            name: "CharacterTrajectories.zip",
            urls: &["https://www.timeseriesclassification.com/aeon-toolkit/CharacterTrajectories.zip"],
            check: Check::AtLeast(1_000_000),
            members: &["CharacterTrajectories_TRAIN.ts", "CharacterTrajectories_TEST.ts"],
        }],
        local: &[
            plain(&["CharacterTrajectories_TRAIN.ts*", "CharacterTrajectories_TEST.ts*"]),
            plain(&["CharacterTrajectories.ts*"]),
            plain(&["CharacterTrajectories*.ts*"]),
        ],
        also: &[],
        count: 2_858,
        titles: (
            1,
            &["a", "b", "c", "d", "e", "g", "h", "l", "m", "n", "o", "p", "q", "r", "s", "u", "v", "w", "y", "z"],
        ),
    },
    KnownSet {
        name: "arabic-digits",
        title: "Spoken Arabic Digits, 13 cepstral coefficients",
        files: files![
            ["https://archive.ics.uci.edu/ml/machine-learning-databases/00195/"]:
            "Train_Arabic_Digit.txt" is Check::Content("cecd3ee9951658e5391f0342e9b6467ba7c0e7ecff5c9012b9c1ed9f81b97bc6"),
            "Test_Arabic_Digit.txt" is Check::Content("de40eac66ce18fca8924bad592002ee7ef646fc84d48b065ce21ac9f88946922"),
        ],
        local: &[plain(&["Train_Arabic_Digit.txt*", "Test_Arabic_Digit.txt*"])],
        also: &[],
        count: 8_800,
        titles: (0, &[]),
    },
];

const IDX: &[Local] = &[plain(&[
    "train-images*idx3-ubyte*",
    "train-labels*idx1-ubyte*",
    "t10k-images*idx3-ubyte*",
    "t10k-labels*idx1-ubyte*",
])];

/// The LIBSVM pages count the digits of USPS from one.
const FROM_ONE: Digits = &[(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7), (9, 8), (10, 9)];
/// SVHN writes the digit 0 as class 10, because MATLAB counts from one.
const TEN_IS_ZERO: Digits = &[(10, 0)];

/// Files whose labels mean what they say.
const fn plain(files: &'static [&'static str]) -> Local {
    Local { files, digits: &[] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_together() {
        for set in SETS {
            assert!(find(set.name).is_some());
            for file in set.files {
                assert!(!file.urls.is_empty());
                for url in file.urls {
                    assert!(url.starts_with("http") && url.ends_with(file.name), "{url}");
                }
                if let Check::File(sum) | Check::Content(sum) = file.check {
                    assert!(sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()), "{}", file.name);
                }
            }
            // What is downloaded must be what is looked for.
            let there: Vec<&str> = set
                .files
                .iter()
                .flat_map(|f| if f.members.is_empty() { std::slice::from_ref(&f.name) } else { f.members })
                .copied()
                .collect();
            assert!(
                set.local[0].files.iter().all(|p| there.iter().any(|n| super::super::local::fits(p, n))),
                "{}",
                set.name
            );
        }
        assert!(find("imagenet").is_none());
    }
}
