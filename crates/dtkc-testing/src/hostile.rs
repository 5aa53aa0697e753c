//! Small files that ask for much.

use std::io::Write;

use crate::files;

/// A gray progressive JPEG of `side` x `side` pixels whose scans go over all of them, again and again: a few bytes a scan.
/// The side must be a multiple of 8.
pub fn progressive_jpeg(side: u16, scans: usize) -> Vec<u8> {
    let blocks = usize::from(side / 8).pow(2);
    let mut jpeg = vec![0xff, 0xd8];
    // All ones divide by nothing.
    segment(&mut jpeg, 0xdb, &[&[0][..], &[1; 64]].concat());
    let [high, low] = side.to_be_bytes();
    segment(&mut jpeg, 0xc2, &[8, high, low, high, low, 1, 1, 0x11, 0]);
    // One code of one bit in each table: "no difference" for the first coefficient, "the next 16384 blocks have nothing
    // more" for the others.
    let one_code = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    segment(&mut jpeg, 0xc4, &[&[0x00][..], &one_code, &[0x00]].concat());
    segment(&mut jpeg, 0xc4, &[&[0x10][..], &one_code, &[0xe0]].concat());
    segment(&mut jpeg, 0xda, &[1, 1, 0x00, 0, 0, 0]);
    jpeg.resize(jpeg.len() + blocks.div_ceil(8), 0);
    for _ in 1..scans {
        segment(&mut jpeg, 0xda, &[1, 1, 0x00, 1, 63, 0]);
        // The code and its 14 further bits, all zero.
        jpeg.resize(jpeg.len() + (blocks.div_ceil(16_384) * 15).div_ceil(8), 0);
    }
    jpeg.extend([0xff, 0xd9]);
    jpeg
}

fn segment(jpeg: &mut Vec<u8>, kind: u8, content: &[u8]) {
    jpeg.extend([0xff, kind]);
    jpeg.extend((content.len() as u16 + 2).to_be_bytes());
    jpeg.extend(content);
}

/// A gray PNG of `side` x `side` pixels with a chunk of `kind` whose content unpacks to so many zeros: `iCCP` or `zTXt`.
pub fn png_with(kind: &[u8; 4], unpacked: usize, side: u32) -> Vec<u8> {
    let plain = files::gray_png(side, side, 7);
    let mut content = b"x\0\0".to_vec();
    let mut packed = flate2::write::ZlibEncoder::new(&mut content, flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for start in (0..unpacked).step_by(zeros.len()) {
        packed.write_all(&zeros[..zeros.len().min(unpacked - start)]).unwrap();
    }
    packed.finish().unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(kind);
    crc.update(&content);
    let length = (content.len() as u32).to_be_bytes();
    // Behind the signature and the header.
    [&plain[..33], &length, kind, &content, &crc.sum().to_be_bytes(), &plain[33..]].concat()
}
