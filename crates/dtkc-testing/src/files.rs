//! Encoded images and archives.

use std::io::{Cursor, Write};

use image::{DynamicImage, GrayImage, ImageFormat, Rgb, RgbImage};

/// A PNG of these pixels: gray, or RGB where there are three values for each.
pub fn png(height: u32, width: u32, pixels: &[u8]) -> Vec<u8> {
    let image = match pixels.len() == (height * width) as usize {
        true => GrayImage::from_raw(width, height, pixels.to_vec()).map(DynamicImage::from),
        false => RgbImage::from_raw(width, height, pixels.to_vec()).map(DynamicImage::from),
    };
    encoded(&image.expect("one or three values for each pixel"), ImageFormat::Png)
}

/// A gray PNG whose pixels all have one value.
pub fn gray_png(height: u32, width: u32, value: u8) -> Vec<u8> {
    png(height, width, &vec![value; (height * width) as usize])
}

/// A colour image whose pixels all have one value.
pub fn rgb_image(height: u32, width: u32, value: [u8; 3], format: ImageFormat) -> Vec<u8> {
    encoded(&RgbImage::from_pixel(width, height, Rgb(value)).into(), format)
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// The header of a PNG that claims that size, and hardly anything behind it.
pub fn png_that_claims(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = gray_png(8, 8, 0);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.sum().to_be_bytes());
    bytes
}

/// The bytes, gzipped.
pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The bytes, packed with bzip2.
pub fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A zip of these files.
pub fn zip<B: AsRef<[u8]>>(files: &[(&str, B)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes.as_ref()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A tar of these files.
pub fn tar<B: AsRef<[u8]>>(files: &[(&str, B)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.as_ref().len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes.as_ref()).unwrap();
    }
    tar.into_inner().unwrap()
}

/// A NumPy array of numbers of 32 bits in row-major order.
pub fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    npy_of("<f4", shape, values.iter().flat_map(|value| value.to_le_bytes()))
}

/// A NumPy array of whole numbers of 64 bits.
pub fn npy_integers(values: &[i64]) -> Vec<u8> {
    npy_of("<i8", &[values.len()], values.iter().flat_map(|value| value.to_le_bytes()))
}

fn npy_of(kind: &str, shape: &[usize], data: impl Iterator<Item = u8>) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    header.push_str(&" ".repeat(63 - (10 + header.len()) % 64));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// An IDX file of bytes.
pub fn idx(dims: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, dims.len() as u8];
    dims.iter().for_each(|d| bytes.extend(d.to_be_bytes()));
    bytes.extend(values);
    bytes
}

/// A MAT v5 file of arrays of bytes, each with its name and shape, in MATLAB's order.
pub fn mat(arrays: &[(&str, &[u32], &[u8])]) -> Vec<u8> {
    const UINT8: u32 = 2;
    const INT8: u32 = 1;
    const INT32: u32 = 5;
    const UINT32: u32 = 6;
    const MATRIX: u32 = 14;
    const CLASS_UINT8: u32 = 9;
    let element = |kind: u32, content: &[u8]| {
        let mut bytes = [kind.to_le_bytes(), (content.len() as u32).to_le_bytes()].concat();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let mut bytes = vec![b' '; 124];
    bytes.extend(b"\0\x01IM");
    for (name, dims, values) in arrays {
        let dims: Vec<u8> = dims.iter().flat_map(|d| d.to_le_bytes()).collect();
        let flags = [CLASS_UINT8.to_le_bytes(), [0; 4]].concat();
        let parts = [(UINT32, &flags[..]), (INT32, &dims), (INT8, name.as_bytes()), (UINT8, values)];
        let content: Vec<u8> = parts.iter().flat_map(|(kind, content)| element(*kind, content)).collect();
        bytes.extend(element(MATRIX, &content));
    }
    bytes
}
