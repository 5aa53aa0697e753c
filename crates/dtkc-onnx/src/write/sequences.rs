//! The nodes of layers that take sequences. Between layers a sequence is `[batch, time, features]`.

use super::builder::{Builder, Dim, int, ints, text};
use crate::proto::DataType;
use crate::sizes::Size;
use crate::{GruOutput, GruWeights};

impl Builder {
    /// The values with zeros behind each sequence's end. Whatever stands there, NaN too, is gone before anything is
    /// computed, whichever runtime it is.
    pub(super) fn valid_steps(&mut self, dim: usize) -> String {
        use Dim::{Batch, Size as Known, Time};
        for (name, value) in [("zeroth", 0), ("first", 1)] {
            self.scalar(name, value);
        }
        self.floats("zero", &[], &[0.0]);
        self.integers("steps_axis", &[1]);
        self.integers("values_axis", &[2]);
        self.push("Shape", &["values"], &["shape"], vec![]);
        self.value("shape", DataType::Int64, &[Known(3)]);
        self.push("Gather", &["shape", "first"], &["time"], vec![int("axis", 0)]);
        self.value("time", DataType::Int64, &[]);
        self.push("Range", &["zeroth", "time", "first"], &["steps"], vec![]);
        self.value("steps", DataType::Int64, &[Time]);
        self.push("Unsqueeze", &["lengths", "steps_axis"], &["ends"], vec![]);
        self.value("ends", DataType::Int64, &[Batch, Known(1)]);
        self.push("Less", &["steps", "ends"], &["within"], vec![]);
        self.value("within", DataType::Bool, &[Batch, Time]);
        self.push("Unsqueeze", &["within", "values_axis"], &["valid"], vec![]);
        self.value("valid", DataType::Bool, &[Batch, Time, Known(1)]);
        // What the GRU operator calls `sequence_lens` has 32 bits.
        self.push("Cast", &["lengths"], &["sequence_lens"], vec![int("to", DataType::Int32 as i64)]);
        self.value("sequence_lens", DataType::Int32, &[Batch]);
        self.sized("Where", "valid_values", &["valid", "values", "zero"], vec![], Size::Sequence(dim))
    }

    pub(super) fn standardize(
        &mut self,
        name: &str,
        [mean, deviation]: [&Vec<f32>; 2],
        size: Size,
        value: &str,
    ) -> String {
        let (centre, scale) = (format!("{name}_mean"), format!("{name}_deviation"));
        self.floats(&centre, &[mean.len()], mean);
        self.floats(&scale, &[deviation.len()], deviation);
        let centred = self.sized("Sub", &format!("{name}_centred"), &[value, &centre], vec![], size);
        self.sized("Div", name, &[&centred, &scale], vec![], size)
    }

    /// ONNX's GRU takes `[time, batch, features]` and gives `[time, directions, batch, units]`.
    pub(super) fn gru(&mut self, name: &str, directions: [&GruWeights; 2], keep: GruOutput, value: &str) -> String {
        use Dim::{Batch, Size as Known, Time};
        let part = |part: &str| format!("{name}_{part}");
        let (features, units) = (directions[0].input.shape[1], directions[0].recurrent.shape[1]);
        let [by_time, input, recurrent, bias, states] = ["by_time", "input", "recurrent", "bias", "states"].map(part);
        self.push("Transpose", &[value], &[&by_time], vec![ints("perm", &[1, 0, 2])]);
        self.value(&by_time, DataType::Float, &[Time, Batch, Known(features)]);
        self.floats(&input, &[2, 3 * units, features], &directions.map(|d| d.input.data.as_slice()).concat());
        self.floats(&recurrent, &[2, 3 * units, units], &directions.map(|d| d.recurrent.data.as_slice()).concat());
        let biases = directions.map(|d| [d.input_bias.as_slice(), &d.recurrent_bias].concat());
        self.floats(&bias, &[2, 6 * units], &biases.concat());
        let attributes =
            vec![text("direction", "bidirectional"), int("hidden_size", units as i64), int("linear_before_reset", 1)];
        let inputs = [by_time.as_str(), &input, &recurrent, &bias, "sequence_lens"];
        match keep {
            GruOutput::Steps => {
                let (by_item, sizes) = (part("by_item"), part("sizes"));
                self.push("GRU", &inputs, &[&states], attributes);
                self.value(&states, DataType::Float, &[Time, Known(2), Batch, Known(units)]);
                self.push("Transpose", &[&states], &[&by_item], vec![ints("perm", &[2, 0, 1, 3])]);
                self.value(&by_item, DataType::Float, &[Batch, Time, Known(2), Known(units)]);
                // 0 means: as it is.
                self.integers(&sizes, &[0, 0, 2 * units as i64]);
                self.sized("Reshape", name, &[&by_item, &sizes], vec![], Size::Sequence(2 * units))
            }
            GruOutput::Last => {
                self.push("GRU", &inputs, &["", &states], attributes);
                self.value(&states, DataType::Float, &[Known(2), Batch, Known(units)]);
                let order = vec![ints("perm", &[1, 0, 2])];
                let by_item = self.node("Transpose", &part("by_item"), &[&states], order, &[2, units]);
                self.node("Flatten", name, &[&by_item], vec![int("axis", 1)], &[2 * units])
            }
        }
    }

    /// Places are whole numbers and a remainder, so that they are exact however long a sequence is.
    pub(super) fn resample(&mut self, name: &str, steps: usize, after: Size, value: &str) -> String {
        use Dim::{Batch, Size as Known};
        let part = |part: &str| format!("{name}_{part}");
        let numbers: Vec<i64> = (0..steps as i64).collect();
        let [index, whole, parts] = ["index", "whole", "parts"].map(part);
        self.integers(&index, &numbers);
        self.scalar(&whole, steps as i64 - 1);
        self.floats(&parts, &[], &[(steps - 1) as f32]);
        let row = [Batch, Known(steps)];
        let mut integers = |op: &str, name: &str, inputs: [&str; 2], dims: &[Dim]| {
            let name = part(name);
            self.push(op, &inputs, &[&name], vec![]);
            self.value(&name, DataType::Int64, dims)
        };
        let last = integers("Sub", "last", ["ends", "first"], &[Batch, Known(1)]);
        let scaled = integers("Mul", "scaled", [&last, &index], &row);
        let low = integers("Div", "low", [&scaled, &whole], &row);
        let rest = integers("Mod", "rest", [&scaled, &whole], &row);
        let next = integers("Add", "next", [&low, "first"], &row);
        let high = integers("Min", "high", [&next, &last], &row);
        let [low, high] = [low, high].map(|place| {
            integers(
                "Unsqueeze",
                &format!("{}_place", &place[name.len() + 1..]),
                [&place, "values_axis"],
                &[Batch, Known(steps), Known(1)],
            )
        });
        let cast = vec![int("to", DataType::Float as i64)];
        let rest = self.node("Cast", &part("remainder"), &[&rest], cast, &[steps]);
        let share = self.node("Div", &part("share"), &[&rest, &parts], vec![], &[steps]);
        let share = self.node("Unsqueeze", &part("shares"), &[&share, "values_axis"], vec![], &[steps, 1]);
        let [below, above] = [("below", low), ("above", high)].map(|(side, places)| {
            self.sized("GatherND", &part(side), &[value, &places], vec![int("batch_dims", 1)], after)
        });
        let apart = self.sized("Sub", &part("apart"), &[&above, &below], vec![], after);
        let moved = self.sized("Mul", &part("moved"), &[&apart, &share], vec![], after);
        self.sized("Add", name, &[&below, &moved], vec![], after)
    }
}
