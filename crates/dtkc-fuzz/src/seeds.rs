//! Real inputs to begin with.

use std::path::Path;

use dtkc_core::{NamedArray, Values};
use dtkc_dataset::{Origin, Writer, WriterOptions};
use dtkc_item::{FeatureShape, ItemError, ItemShape, Items, TapShape, Taps};
use dtkc_label::journal::{self, Journal};
use dtkc_label::row::{Label, Row};
use dtkc_onnx::testing::{End, Foreign};
use dtkc_onnx::{Layer, Weights};
use dtkc_testing::parquet::ImageTable;
use dtkc_testing::{Set, drawing, files, model};
use image::ImageFormat;

/// Inputs that once ended badly: the files of `corpus/TARGET`.
pub fn regressions(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Small images in every format.
pub fn images() -> Vec<Vec<u8>> {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let mut all: Vec<Vec<u8>> =
        [Png, Jpeg, Gif, Bmp, Tiff, WebP].map(|format| files::rgb_image(9, 13, [200, 30, 90], format)).to_vec();
    all.extend([files::gray_png(8, 8, 7), drawing(24, 3), files::png_that_claims(5000, 5000)]);
    // Just large enough to be decoded at a smaller size, and no larger than the targets allow.
    all.push(files::rgb_image(1024, 1024, [200, 30, 90], Jpeg));
    all
}

/// Zips of images, of other files, of nothing.
pub fn zips() -> Vec<Vec<u8>> {
    let image = files::gray_png(8, 8, 7);
    let others: &[(&str, &[u8])] =
        &[("cats/1.png", &image), ("readme.txt", b"x"), ("../up.png", &image), ("dogs/2.png", &image)];
    let none: &[(&str, &[u8])] = &[];
    vec![files::zip(others), files::zip(none), files::zip(&[("a.png", &image)])]
}

/// Tars, plain and compressed.
pub fn tars() -> Vec<Vec<u8>> {
    let image = files::gray_png(8, 8, 7);
    let tar = files::tar(&[("cats/1.png", &image[..]), ("readme.txt", b"x"), ("dogs/2.png", &image)]);
    let samples = files::tar(&[
        ("1.cls", b"3".as_slice()),
        ("1.png", &image),
        ("2.png", &image),
        ("2.json", b"{\"label\": \"a\"}"),
    ]);
    vec![files::gz(&tar), files::bz2(&tar), tar, files::gz(&samples), samples]
}

/// Tables with an image in every row, in every compression.
pub fn image_tables() -> Vec<Vec<u8>> {
    use dtkc_testing::parquet::Compression::{GZIP, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    let image = files::gray_png(8, 8, 7);
    let plain = ImageTable::new(&[("cats/1.png", &image), ("2.png", &image), ("../3.png", &image), ("4.png", &image)]);
    let mut holes = plain.clone().labelled(&[0, 1, -1, 1], Some(&["cat", "dog"]));
    holes.rows[1].bytes = None;
    let packed = [UNCOMPRESSED, SNAPPY, GZIP(Default::default()), ZSTD(Default::default()), LZ4_RAW];
    packed
        .map(|compression| ImageTable { compression, ..holes.clone() }.file())
        .into_iter()
        .chain([plain.file()])
        .collect()
}

/// Arrays and tables.
pub fn arrays() -> Vec<Vec<u8>> {
    let pixels: Vec<u8> = (0..48).collect();
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend(format!("{:<117}\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 4), }").bytes());
    npy.extend(&pixels);
    let npz = files::zip(&[("x.npy", &npy[..]), ("y.npy", &npy)]);
    vec![
        files::idx(&[3, 4, 4], &pixels),
        files::gz(&files::idx(&[3, 4, 4], &pixels)),
        files::mat(&[("X", &[4, 4, 3], &pixels), ("y", &[3, 1], &[1, 2, 3])]),
        npy,
        npz,
        b"1 1:0.5 2:1 16:0.25\n2 3:-1 16:1\n1 16:0.75\n".to_vec(),
        b"@problemName x\n@classLabel true a b\n@data\n1,2,3:4,5,6:a\n3,2,1:6,5,4:b\n".to_vec(),
        files::gray_png(8, 8, 7),
    ]
}

/// Sequences: tables, arrays, sounds.
pub fn sequences() -> Vec<Vec<u8>> {
    let npy = |descr: &str, shape: &str, bytes: &[u8]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), format!("{header:<117}\n").as_bytes(), bytes].concat()
    };
    let floats: Vec<u8> = (0..12u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    let offsets: Vec<u8> = [0i64, 1, 6].iter().flat_map(|i| i.to_le_bytes()).collect();
    let stacked = npy("<f4", "(2, 3, 2)", &floats);
    let (values, offsets) = (npy("<f4", "(6, 2)", &floats), npy("<i8", "(3,)", &offsets));
    let sound = |samples: &[u8]| {
        let format = [1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0];
        let (size, length) = ((samples.len() as u32 + 36).to_le_bytes(), (samples.len() as u32).to_le_bytes());
        [b"RIFF".as_slice(), &size[..], b"WAVEfmt \x10\0\0\0", &format, b"data", &length, samples].concat()
    };
    vec![
        b"id,time,x,y,label\na,0,1,2,up\na,1,,4,up\nb,0,5,6,down\n".to_vec(),
        b"label,x0,x1,y0,y1\nup,1,3,2,4\ndown,5,,6,\n".to_vec(),
        b"\"a;b\";1,5;?\n\"c\"\"d\";2;nan\n".to_vec(),
        files::zip(&[("values.npy", &values), ("offsets.npy", &offsets)]),
        files::zip(&[("x.npy", &stacked), ("y.npy", &npy("|O", "(2,)", b"\x80\x03]."))]),
        stacked,
        sound(&(0..=255).collect::<Vec<u8>>()),
        files::zip(&[("a/1.wav", sound(&[7; 90])), ("b/2.wav", sound(&[9; 900]))]),
        files::gz(&files::tar(&[("a/1.csv", "x,y\n1,2\n"), ("b/2.csv", "3,4\n5,6\n")])),
    ]
}

/// Dataset files.
pub fn datasets() -> Vec<Vec<u8>> {
    let shape = dtkc_item::ImageShape { height: 4, width: 4, channels: 1 };
    let write = |set: Set| from_file("set.h5", |path| Ok(set.write(path)));
    let plain = write(Set::new(shape, 9).labelled(&["cat", "dog"]).with_paths());
    let packed = write(Set::new(shape, 9).gzip(1));
    let features = from_file("set.h5", |path| {
        let taps = Taps::new(&[TapShape::Maps { channels: 2, height: 1, width: 2 }, TapShape::Vector(2)]);
        let shape = ItemShape::Features(FeatureShape { dim: 3, views: 1, taps: taps.unwrap_or_default() });
        let origin = Some(Origin { about: "{}".into(), network: vec![7; 40] });
        let options = WriterOptions { origin, ..WriterOptions::new(shape, "features", "test") };
        let mut writer = Writer::create(path, options).map_err(|e| e.to_string())?;
        (0..5).try_for_each(|_| writer.push_features(&[0.5; 12], None, None)).map_err(|e| e.to_string())?;
        writer.finish().map_err(|e| e.to_string())
    });
    [plain, packed, features].concat()
}

/// Networks of others.
pub fn backbones() -> Vec<Vec<u8>> {
    let plain = Foreign::default();
    let others = [End::Vector, End::Maps, End::Tokens].map(|end| Foreign { end, ..plain });
    let last = Foreign { channels_last: true, bytes: true, ..plain };
    others.iter().chain([&plain, &last]).map(Foreign::file).collect()
}

/// Bodies of /v1/assign.
pub fn json_bodies() -> Vec<Vec<u8>> {
    let image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";
    vec![
        format!("{{\"images\": [\"{image}\", {{\"name\": \"b\", \"data\": \"{image}\"}}], \"top_k\": 2}}").into_bytes(),
        format!("{{\"images\": [\"data:image/png;base64,{image}\"], \"embedding\": true}}").into_bytes(),
        b"{\"images\": []}".to_vec(),
    ]
}

/// Forms with files.
pub fn forms() -> Vec<Vec<u8>> {
    let part = |head: &str, body: &[u8]| {
        [format!("--b\r\ncontent-disposition: form-data; {head}\r\n\r\n").as_bytes(), body, b"\r\n"].concat()
    };
    let image = files::gray_png(8, 8, 7);
    let zip = zips().swap_remove(0);
    vec![
        [part("name=\"i\"; filename=\"a.png\"", &image), part("name=\"top_k\"", b"2"), b"--b--\r\n".to_vec()].concat(),
        [
            part("name=\"i\"; filename*=UTF-8''%e2%82%ac.png", &image),
            part("name=\"z\"; filename=\"z.zip\"", &zip),
            b"--b--\r\n".to_vec(),
        ]
        .concat(),
    ]
}

/// Bodies of the inference protocol.
pub fn v2_bodies() -> Vec<Vec<u8>> {
    let side = model::SIDE;
    let zeros = vec!["0"; side * side].join(",");
    let tensor =
        format!("{{\"name\":\"image\",\"shape\":[1,{side},{side},1],\"datatype\":\"UINT8\",\"data\":[{zeros}]}}");
    vec![
        format!("{{\"id\":\"x\",\"inputs\":[{tensor}]}}").into_bytes(),
        format!("{{\"inputs\":[{tensor}],\"outputs\":[{{\"name\":\"cluster\"}},{{\"name\":\"embedding\"}}]}}")
            .into_bytes(),
    ]
}

/// Bodies of JSON with sequences.
pub fn step_bodies() -> Vec<Vec<u8>> {
    [
        "{\"sequences\": [[[1, 2], [3.5, -4e1]], {\"name\": \"b\", \"values\": [[0, null]]}], \"top_k\": 2}",
        "{\"sequences\": [[[1, 2, 3]], [1, 2], []], \"embedding\": true}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Tables of sequences.
pub fn tables() -> Vec<Vec<u8>> {
    [
        "id,time,x,y,label\na,0,1,2,u\na,1,3,4,u\nb,0,5,?,v\n",
        "x0;x1;y0;y1\n1,5;2;3;4\n5;6;;\n",
        "x\ty\n1\t2\n\"3\"\t4\n",
        "1,2\n3,4\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Inference requests for sequences.
pub fn v2_sequences() -> Vec<Vec<u8>> {
    let values = "{\"name\":\"values\",\"shape\":[2,2,2],\"datatype\":\"FP32\",\"data\":[1,2,[3,4.5],5,6,7,null]}";
    let lengths = "{\"name\":\"lengths\",\"shape\":[2],\"datatype\":\"INT64\",\"data\":[2,1]}";
    vec![
        format!("{{\"id\":\"x\",\"inputs\":[{values},{lengths}],\"outputs\":[{{\"name\":\"cluster\"}}]}}").into_bytes(),
    ]
}

/// Files of cluster names.
pub fn names() -> Vec<Vec<u8>> {
    ["{\"0\": \"zero\", \"7\": \"sevens\"}", "[\"zero\", \"one\"]", "0,zero\n1,one\n"]
        .map(|t| t.as_bytes().to_vec())
        .to_vec()
}

/// Model files.
pub fn models() -> Vec<Vec<u8>> {
    let mut centres = model::network(1, model::SIDE, model::CLUSTERS);
    centres.layers.truncate(centres.layers.len() - 2);
    let rows = vec![0.5; model::CLUSTERS * model::EMBEDDING];
    let shape = [model::CLUSTERS, model::EMBEDDING];
    centres.layers.push(Layer::StudentT { centres: Weights::new(shape, rows) });
    let metadata = model::metadata(model::SIDE, model::CLUSTERS);
    let centres = dtkc_onnx::write(&centres, &metadata).unwrap_or_default();
    let whole = [model::model(1), model::sequence_model(1, 2), centres];
    // With a checksum nothing that was changed about a graph would be looked at.
    let unchecked = whole.iter().map(|bytes| renamed(bytes, b"dtkc.graph_sha256", b"else.graph_sha256"));
    unchecked.chain(whole.iter().cloned()).collect()
}

/// The bytes with one word in place of another of the same length.
fn renamed(bytes: &[u8], word: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(place) = bytes.windows(word.len()).position(|window| window == word) {
        bytes[place..place + word.len()].copy_from_slice(other);
    }
    bytes
}

/// Checkpoints.
pub fn checkpoints() -> Vec<Vec<u8>> {
    let arrays = [
        NamedArray { name: "weights.a".into(), shape: vec![2, 3], values: Values::F32(vec![1.0; 6]) },
        NamedArray::list("counts", Values::U64(vec![1, 2, 3])),
        NamedArray::list("losses", Values::F64(vec![0.5])),
    ];
    let meta = serde_json::json!({"epoch": 3, "batch": 1});
    from_file("last.ckpt", |path| dtkc_train::checkpoint::write(path, &meta, &arrays).map_err(|e| e.to_string()))
}

/// Journals of labelling runs.
pub fn journals() -> Vec<Vec<u8>> {
    let label =
        Label { cluster: 3, confidence: 0.75, second: 1, second_confidence: 0.25, margin: 0.5, ..Label::default() };
    let rows = [
        Row { index: 0, path: "a.png".into(), truth: Some("cat".into()), outcome: Ok(label) },
        Row { index: 1, path: "b.png".into(), truth: None, outcome: Err(ItemError::new("empty", "the file is empty")) },
    ];
    from_file("out.csv.journal", |path| {
        let output = path.with_extension("");
        debug_assert_eq!(journal::path_for(&output), path);
        let mut journal = Journal::create(&output, "{}", false).map_err(|e| e.to_string())?;
        journal.append(&rows, &Items::empty(ItemShape::Sequence { dim: 1 })).map_err(|e| e.to_string())
    })
}

/// Configurations of runs.
pub fn configs() -> Vec<Vec<u8>> {
    let text = "method = \"dtkc\"\npreset = \"plus\"\n[run]\nclusters = 10\nseed = 1\n[plan]\nepochs = 3\nbatch = 120\n[dtkc.loss]\nsigma = 0.15\n";
    vec![text.as_bytes().to_vec(), b"[run]\nclusters = \"auto\"\nk_range = [2, 9]\n".to_vec()]
}

/// What `make` writes to a file; nothing where it cannot.
fn from_file<T>(name: &str, make: impl Fn(&Path) -> Result<T, String>) -> Vec<Vec<u8>> {
    let made = tempfile::tempdir().map_err(|e| e.to_string()).and_then(|folder| {
        let path = folder.path().join(name);
        make(&path)?;
        std::fs::read(&path).map_err(|e| e.to_string())
    });
    match made {
        Ok(bytes) => vec![bytes],
        Err(problem) => panic!("{name} cannot be made: {problem}"),
    }
}
