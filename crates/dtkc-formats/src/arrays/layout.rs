//! From the dimensions of an array to where image k has its pixel (row, column, channel).

use std::fmt;
use std::str::FromStr;

/// Which axis varies fastest in the file, and what people who write such files put where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The last axis; images along the first: C, NumPy, HDF5.
    RowMajor,
    /// The first axis; images along the first all the same: NumPy arrays in Fortran order.
    Fortran,
    /// The first axis; images along the last where they have rows and columns, and flat images stored
    /// column by column: MATLAB.
    Matlab,
}

/// The shape of flat images as the user gives it: `28x28`, `32x32x3`, or `3x32x32` for whole planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlatShape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// 1, 3 or 4.
    pub channels: usize,
    /// One channel after the other instead of one pixel after the other.
    pub planar: bool,
}

impl FromStr for FlatShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not a shape; write for example 28x28, 32x32x3 (pixels) or 3x32x32 (planes)");
        let numbers: Option<Vec<usize>> = text.split(['x', 'X']).map(|p| p.trim().parse().ok()).collect();
        let shape = match numbers.ok_or_else(bad)?[..] {
            [height, width] => Self { height, width, channels: 1, planar: false },
            [height, width, channels @ (1 | 3 | 4)] => Self { height, width, channels, planar: false },
            [channels @ (1 | 3 | 4), height, width] => Self { height, width, channels, planar: true },
            _ => return Err(bad()),
        };
        if shape.height == 0 || shape.width == 0 { Err(bad()) } else { Ok(shape) }
    }
}

impl fmt::Display for FlatShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.height, self.width, self.channels)
    }
}

/// Where the pixels are: value (k, y, x, c) is at `k * image + y * row + x * column + c * channel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Images.
    pub count: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// 1, 3 or 4.
    pub channels: usize,
    /// Distance from one image to the next.
    pub image: usize,
    /// Distance from one row to the next.
    pub row: usize,
    /// Distance from one column to the next.
    pub column: usize,
    /// Distance from one channel to the next.
    pub channel: usize,
}

impl Layout {
    /// Values of one image.
    pub const fn values(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether one image follows the other, so that the array can be read image by image.
    pub const fn streams(&self) -> bool {
        self.image == self.values() || self.count == 1
    }

    /// Whether an image is already in the order that we write.
    pub const fn is_ours(&self) -> bool {
        self.streams() && self.channel == 1 && self.column == self.channels && self.row == self.width * self.channels
    }

    /// Calls `put` with every value's place in our order and in the file's, for the image that starts at
    /// `start`.
    pub fn gather<T: Copy>(&self, start: usize, values: &[T], mut put: impl FnMut(T)) {
        for y in 0..self.height {
            for x in 0..self.width {
                for c in 0..self.channels {
                    put(values[start + y * self.row + x * self.column + c * self.channel]);
                }
            }
        }
    }
}

/// One axis of the array: its length and the distance between neighbours.
#[derive(Debug, Clone, Copy)]
struct Axis {
    length: usize,
    stride: usize,
}

/// Finds the layout of an array of images. `labels` is the number of labels, where there are any: it
/// says which axis counts the images. The error says what is wrong, without the array's name.
pub fn resolve(dims: &[usize], order: Order, flat: Option<FlatShape>, labels: Option<usize>) -> Result<Layout, String> {
    let shown = show(dims);
    if dims.len() < 2 || dims.len() > 4 {
        return Err(format!("an array of shape {shown} cannot hold images; it needs 2 to 4 axes"));
    }
    let axes = axes(dims, order).ok_or_else(|| format!("the shape {shown} is not possible"))?;
    let first = (axes[0], &axes[1..]);
    let last = (axes[axes.len() - 1], &axes[..axes.len() - 1]);
    let usual = if order == Order::Matlab && dims.len() > 2 { last } else { first };
    let unusual = if usual.0.stride == first.0.stride { last } else { first };
    let (images, rest) = match labels {
        Some(n) if usual.0.length == n => usual,
        Some(n) if unusual.0.length == n && pixels(unusual.1, order, flat).is_ok() => unusual,
        Some(n) => return Err(format!("there are {n} labels for {} images", usual.0.length)),
        None => usual,
    };
    let [row, column, channel] = pixels(rest, order, flat).map_err(|e| format!("an array of shape {shown} {e}"))?;
    Ok(Layout {
        count: images.length,
        height: row.length,
        width: column.length,
        channels: channel.length,
        image: images.stride,
        row: row.stride,
        column: column.stride,
        channel: channel.stride,
    })
}

/// `[60000, 28, 28]`.
pub fn show(dims: &[usize]) -> String {
    let parts: Vec<String> = dims.iter().map(usize::to_string).collect();
    format!("[{}]", parts.join(", "))
}

fn axes(dims: &[usize], order: Order) -> Option<Vec<Axis>> {
    let mut axes: Vec<Axis> = dims.iter().map(|&length| Axis { length, stride: 0 }).collect();
    let mut stride = 1usize;
    let mut fill = |axis: &mut Axis| {
        axis.stride = stride;
        stride = stride.checked_mul(axis.length.max(1))?;
        Some(())
    };
    match order {
        Order::RowMajor => axes.iter_mut().rev().try_for_each(&mut fill)?,
        Order::Fortran | Order::Matlab => axes.iter_mut().try_for_each(&mut fill)?,
    }
    Some(axes)
}

/// Rows, columns and channels among the axes of one image.
fn pixels(axes: &[Axis], order: Order, flat: Option<FlatShape>) -> Result<[Axis; 3], String> {
    let one = Axis { length: 1, stride: 1 };
    let is_channels = |axis: Axis| matches!(axis.length, 1 | 3 | 4);
    match *axes {
        [values] => unfold(values, order, flat),
        [row, column] => Ok([row, column, one]),
        [row, column, channel] if is_channels(channel) => Ok([row, column, channel]),
        [channel, row, column] if is_channels(channel) => Ok([row, column, channel]),
        _ => Err("has no axis of 1, 3 or 4 channels".to_owned()),
    }
}

/// Rows, columns and channels of flat images: as the user said, or a square.
fn unfold(values: Axis, order: Order, flat: Option<FlatShape>) -> Result<[Axis; 3], String> {
    let Axis { length, stride } = values;
    let guess = || {
        let side = |n: usize| Some(n.isqrt()).filter(|s| s * s == n && n > 1);
        let gray = side(length).map(|s| (s, 1));
        let rgb = || side(length / 3).filter(|_| length.is_multiple_of(3)).map(|s| (s, 3));
        gray.or_else(rgb).map(|(s, channels)| FlatShape { height: s, width: s, channels, planar: false })
    };
    let shape = match flat.or_else(guess) {
        Some(shape) if shape.height * shape.width * shape.channels == length => shape,
        Some(shape) => {
            return Err(format!(
                "does not fit --shape {shape}, which has {} values",
                shape.height * shape.width * shape.channels
            ));
        }
        None => {
            return Err("holds flat images that are not square; give their size with --shape HxW or HxWxC".to_owned());
        }
    };
    let FlatShape { height, width, channels, planar } = shape;
    let (row, column, channel) = match order {
        // MATLAB's reshape fills rows first, then columns, then channels.
        Order::Matlab => (1, height, width * height),
        _ if planar => (width, 1, width * height),
        _ => (width * channels, channels, 1),
    };
    let axis = |length, step| Axis { length, stride: step * stride };
    Ok([axis(height, row), axis(width, column), axis(channels, channel)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_major(dims: &[usize]) -> Layout {
        resolve(dims, Order::RowMajor, None, None).unwrap()
    }

    #[test]
    fn the_usual_shapes_are_known() {
        let gray = row_major(&[60000, 28, 28]);
        assert_eq!((gray.count, gray.height, gray.width, gray.channels), (60000, 28, 28, 1));
        assert!(gray.is_ours());
        let last = row_major(&[10, 32, 40, 3]);
        assert_eq!((last.height, last.width, last.channels, last.channel), (32, 40, 3, 1));
        assert!(last.is_ours());
        let first = row_major(&[10, 3, 32, 40]);
        assert_eq!((first.height, first.width, first.channels, first.channel), (32, 40, 3, 32 * 40));
        assert!(first.streams() && !first.is_ours());
        let flat = row_major(&[9298, 256]);
        assert_eq!((flat.count, flat.height, flat.width, flat.channels), (9298, 16, 16, 1));
        assert_eq!(row_major(&[10, 3072]).channels, 3);
    }

    #[test]
    fn svhn_in_matlab_order() {
        let svhn = resolve(&[32, 32, 3, 100], Order::Matlab, None, Some(100)).unwrap();
        assert_eq!((svhn.count, svhn.height, svhn.width, svhn.channels), (100, 32, 32, 3));
        assert_eq!((svhn.image, svhn.row, svhn.column, svhn.channel), (3072, 1, 32, 1024));
        assert!(svhn.streams());
        // The same array, transposed by a Python program that kept the order of the axes.
        let numpy = resolve(&[32, 32, 3, 100], Order::RowMajor, None, Some(100)).unwrap();
        assert_eq!((numpy.count, numpy.image, numpy.channel), (100, 1, 100));
        assert!(!numpy.streams());
    }

    #[test]
    fn flat_matlab_images_are_stored_by_columns() {
        let flat = resolve(&[400, 1024], Order::Matlab, None, Some(400)).unwrap();
        assert_eq!((flat.count, flat.height, flat.image, flat.row, flat.column), (400, 32, 1, 400, 400 * 32));
    }

    #[test]
    fn fortran_order_keeps_the_meaning_of_the_axes() {
        let layout = resolve(&[10, 28, 20], Order::Fortran, None, None).unwrap();
        assert_eq!((layout.count, layout.height, layout.width), (10, 28, 20));
        assert_eq!((layout.image, layout.row, layout.column), (1, 10, 280));
        assert!(!layout.streams());
    }

    #[test]
    fn a_given_shape_is_used_and_checked() {
        let shape: FlatShape = "10x20x3".parse().unwrap();
        let layout = resolve(&[5, 600], Order::RowMajor, Some(shape), None).unwrap();
        assert_eq!((layout.height, layout.width, layout.channels, layout.channel), (10, 20, 3, 1));
        let planar: FlatShape = "3x10x20".parse().unwrap();
        assert_eq!(resolve(&[5, 600], Order::RowMajor, Some(planar), None).unwrap().channel, 200);
        assert!(resolve(&[5, 601], Order::RowMajor, Some(shape), None).unwrap_err().contains("--shape 10x20x3"));
        assert!(resolve(&[5, 601], Order::RowMajor, None, None).unwrap_err().contains("--shape HxW"));
        for text in ["", "28", "0x28", "28x28x2", "axb"] {
            assert!(text.parse::<FlatShape>().is_err(), "{text}");
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(resolve(&[7], Order::RowMajor, None, None).unwrap_err().contains("[7]"));
        assert!(resolve(&[5, 6, 7, 8], Order::RowMajor, None, None).unwrap_err().contains("channels"));
        assert!(resolve(&[usize::MAX, 9, 9, 3], Order::RowMajor, None, None).unwrap_err().contains("not possible"));
        assert_eq!(
            resolve(&[10, 28, 28], Order::RowMajor, None, Some(9)),
            Err("there are 9 labels for 10 images".to_owned())
        );
    }
}
