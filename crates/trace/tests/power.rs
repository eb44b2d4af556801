//! Recordings of power: the samples read, and the errors about broken ones.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be read is a failed case"
)]

use fulmar_channel::fading::{Fading, PowerTrace, RecordingPart};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, OpticalPower};
use fulmar_trace::{PowerOptions, read_power};
use proptest::prelude::*;
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;

const EVERY_100_US: PowerOptions = PowerOptions {
    part: None,
    spacing: Some(Duration::from_micros(100)),
};

fn read(octets: &[u8], options: PowerOptions) -> Result<PowerTrace, String> {
    read_power("power.csv", octets, options).map_err(|error| error.to_string())
}

fn trace(spacing: Duration, watts: &[f64]) -> PowerTrace {
    let mut trace = PowerTrace::new(spacing);
    for &watts in watts {
        trace
            .push(OpticalPower::from_watts(watts).unwrap())
            .unwrap();
    }
    trace
}

#[test]
fn tables_are_read_with_and_without_times_and_names() {
    let millis = Duration::from_millis(1);
    let by_name = "# measured\npower_nw, other, time_s\n1,x,10.000\n2.5,y,10.001\n0,z,10.002\n";
    let expected = trace(millis, &[1e-9, 2.5e-9, 0.0]);
    assert_eq!(
        read(by_name.as_bytes(), PowerOptions::default()),
        Ok(expected)
    );
    let bare = "1e-9\n2e-9\n";
    let expected = trace(Duration::from_micros(100), &[1e-9, 2e-9]);
    assert_eq!(read(bare.as_bytes(), EVERY_100_US), Ok(expected));
    let pairs = "0, 3\n0.5, 4\n";
    let expected = trace(Duration::from_millis(500), &[3.0, 4.0]);
    assert_eq!(
        read(pairs.as_bytes(), PowerOptions::default()),
        Ok(expected)
    );
    let dbm = read(b"power_dbm\n-30\n-60\n", EVERY_100_US).unwrap();
    let watts: Vec<f64> = powers(dbm);
    assert!((watts[0] / watts[1] - 1000.0).abs() < 1e-3, "{watts:?}");
}

/// The powers that a channel takes from a trace, up to a factor.
fn powers(trace: PowerTrace) -> Vec<f64> {
    let fading: Fading = "trace power ber 1e-6".parse().unwrap();
    let fading = fading.with_trace(Arc::new(trace)).unwrap();
    let fades = fading.fades(&Rng::from_seed(1)).unwrap();
    fades.map(|fade| fade.power.watts()).collect()
}

#[test]
fn times_that_are_rounded_are_no_gap_and_their_mean_is_the_spacing() {
    let rows: Vec<String> = (0..1000)
        .map(|i| format!("{:.5},1", f64::from(i) * 0.000_123_4))
        .collect();
    let text = format!("time_s,power\n{}\n", rows.join("\n"));
    let read = read(text.as_bytes(), PowerOptions::default()).unwrap();
    // 999 intervals from 0 to 0.12328 (0.1232766 rounded to five digits).
    let spacing = 0.123_28 / 999.0;
    assert!((read.spacing().as_secs_f64() - spacing).abs() < 1e-9);
}

#[test]
fn a_part_is_cut_out_of_a_recording_that_is_read_no_further() {
    let part = |from: u64, length: u64| PowerOptions {
        part: Some(RecordingPart {
            from: Duration::from_millis(from),
            length: Duration::from_millis(length),
        }),
        spacing: None,
    };
    let rows: Vec<String> = (0..10)
        .map(|i| format!("{},{i}", f64::from(i) * 1e-3 + 7.0))
        .collect();
    // The broken row behind the wanted part is not met.
    let text = format!("time_s,power\n{}\nbroken", rows.join("\n"));
    let millis = Duration::from_millis(1);
    let read = |options| read(text.as_bytes(), options);
    assert_eq!(read(part(2, 3)), Ok(trace(millis, &[2.0, 3.0, 4.0])));
    assert!(
        read(PowerOptions::default())
            .unwrap_err()
            .contains("power.csv:12")
    );
    let whole = format!("time_s,power\n{}\n", rows.join("\n"));
    let beyond = read_power("power.csv", whole.as_bytes(), part(8, 5)).unwrap_err();
    assert!(
        beyond.to_string().contains("ends before the part 8ms+5ms"),
        "{beyond}"
    );
}

const TIMED: PowerOptions = PowerOptions {
    part: None,
    spacing: None,
};

/// Tables, the options they are read with, and the error expected: its place, and the remedy.
const BROKEN_TABLES: &[(&str, PowerOptions, &str, &str)] = &[
    ("", TIMED, "power.csv:", "a row for each sample"),
    (
        "voltage,time_s\n1,0\n",
        TIMED,
        "power.csv:1: `columns`",
        "power_w, power_nw",
    ),
    (
        "power_w,power_nw\n1,2\n",
        TIMED,
        "power.csv:1: `columns`",
        "keep one column",
    ),
    (
        "1,2,3\n",
        TIMED,
        "power.csv:1: `columns`",
        "name the columns",
    ),
    (
        "power\n1\n2\n",
        TIMED,
        "power.csv:1: `columns`",
        "spacing 100us",
    ),
    (
        "time_s,power\n0,1\n",
        TIMED,
        "power.csv:",
        "not two samples",
    ),
    ("time_s,power\n", TIMED, "power.csv:", "not two samples"),
    ("power\n", EVERY_100_US, "power.csv:", "no sample"),
    (
        "power\n1\nNaN\n",
        EVERY_100_US,
        "power.csv:3: `power`",
        "cut the file there",
    ),
    (
        "power\n1\ninf\n",
        EVERY_100_US,
        "power.csv:3: `power`",
        "cut the file there",
    ),
    (
        "power_w\n1\n-2e-9\n",
        EVERY_100_US,
        "power.csv:3: `power_w`",
        "dark level",
    ),
    (
        "power\n1\n\"\"\n",
        EVERY_100_US,
        "power.csv:3: `power`",
        "nothing is given",
    ),
    (
        "power\n1\n1;5\n",
        EVERY_100_US,
        "power.csv:3: `power`",
        "not a number",
    ),
    (
        "power\n1\n1,5\n",
        EVERY_100_US,
        "power.csv:3: `columns`",
        "there are 2, and 1",
    ),
    (
        "time_s,power\n0,1\n0.1\n",
        TIMED,
        "power.csv:3: `columns`",
        "there are 1, and 2",
    ),
    (
        "time_s,power\n0,1\n0.1,1\n0.1,1\n",
        TIMED,
        "power.csv:4: `time_s`",
        "not later",
    ),
    (
        "time_s,power\n0,1\n0.1,1\nNaN,1\n",
        TIMED,
        "power.csv:4: `time_s`",
        "12.5",
    ),
    (
        "time_s,power\n5,1\n5.1,1\n5.4,1\n",
        TIMED,
        "power.csv:4: `time_s`",
        "part 0s+0.100s",
    ),
    (
        "time_s,power\n0,1\n0.1,1\n0.12,1\n",
        TIMED,
        "power.csv:4: `time_s`",
        "one distance",
    ),
    ("\u{1}\u{2}\n", TIMED, "power.csv:1", "power_w"),
];

#[test]
fn each_kind_of_broken_table_is_told_with_its_line_and_the_remedy() {
    for &(text, options, place, words) in BROKEN_TABLES {
        let error = read(text.as_bytes(), options).unwrap_err();
        assert!(
            error.starts_with(place) && error.contains(words),
            "{text:?}: {error}"
        );
        assert!(!error.contains('\n'), "{text:?}: {error}");
    }
    assert!(read(b"\xFF\xFE\n", TIMED).unwrap_err().contains("no text"));
}

/// Rows without end, and the number of octets read from them.
struct Endless {
    taken: usize,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        for octet in into.iter_mut() {
            *octet = b"1\n"[self.taken % 2];
            self.taken += 1;
        }
        Ok(into.len())
    }
}

#[test]
fn a_file_without_end_is_refused_at_the_bound_or_gives_its_part() {
    let mut endless = Endless { taken: 0 };
    let error = read_power("long.csv", BufReader::new(&mut endless), EVERY_100_US);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("16777216 samples"), "{error}");
    assert!(error.contains("part 0s+1000s"), "{error}");
    assert!(
        endless.taken < 2 * (PowerTrace::SAMPLES_MAX + 10_000),
        "{}",
        endless.taken
    );

    let mut endless = Endless { taken: 0 };
    let options = PowerOptions {
        part: Some(RecordingPart {
            from: Duration::from_secs(10),
            length: Duration::from_secs(1),
        }),
        ..EVERY_100_US
    };
    let part = read_power("long.csv", BufReader::new(&mut endless), options).unwrap();
    assert_eq!(part.len(), 10_000);
    assert!(endless.taken < 2 * 120_000, "{}", endless.taken);
}

/// Octets of MATLAB files, little endian.
fn element(kind: u32, content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap();
    let mut octets = [kind.to_le_bytes(), len.to_le_bytes()].concat();
    octets.extend_from_slice(content);
    if kind != 15 {
        octets.resize(octets.len().next_multiple_of(8), 0);
    }
    octets
}

fn small(kind: u16, content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).unwrap();
    let mut octets = [kind.to_le_bytes(), len.to_le_bytes()].concat();
    octets.extend_from_slice(content);
    octets.resize(8, 0);
    octets
}

fn array(class: u8, flags: u8, sizes: &[i32], name: &[u8], values: &[u8]) -> Vec<u8> {
    let sizes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
    let name = if name.len() <= 4 {
        small(1, name)
    } else {
        element(1, name)
    };
    let head = element(6, &[class, flags, 0, 0, 0, 0, 0, 0]);
    let content = [head, element(5, &sizes), name, values.to_vec()].concat();
    element(14, &content)
}

fn doubles(values: &[f64]) -> Vec<u8> {
    let octets: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    element(9, &octets)
}

fn file(elements: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = b"MATLAB 5.0 MAT-file, Platform: GLNXA64".to_vec();
    octets.resize(124, b' ');
    octets.extend_from_slice(&[0, 1, b'I', b'M']);
    octets.extend(elements.concat());
    octets
}

fn compressed(element_: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(element_).unwrap();
    element(15, &encoder.finish().unwrap())
}

fn read_matlab(octets: &[u8], options: PowerOptions) -> Result<PowerTrace, String> {
    read_power("power.mat", octets, options).map_err(|error| error.to_string())
}

const VALUES: [f64; 5] = [1.0, 0.25, 0.0, 3.5, 0.125];
const SINGLE_VALUES: [f32; 5] = [1.0, 0.25, 0.0, 3.5, 0.125];

#[test]
fn a_vector_of_any_kind_of_numbers_is_read_compressed_or_not() {
    let expected = trace(Duration::from_micros(100), &VALUES);
    let power = array(6, 0, &[5, 1], b"power", &doubles(&VALUES));
    let short_name = array(6, 0, &[1, 5], b"P", &doubles(&VALUES));
    let scalar = array(6, 0, &[1, 1], b"fs", &doubles(&[1e4]));
    let text = array(4, 0, &[1, 2], b"who", &element(4, &[b'D', 0, b'L', 0]));
    for elements in [
        vec![power.clone()],
        vec![short_name],
        vec![scalar.clone(), text, power.clone()],
        vec![compressed(&scalar), compressed(&power)],
    ] {
        assert_eq!(
            read_matlab(&file(&elements), EVERY_100_US),
            Ok(expected.clone())
        );
    }
    let floats: Vec<u8> = SINGLE_VALUES.iter().flat_map(|v| v.to_le_bytes()).collect();
    let single = array(7, 0, &[5, 1], b"power", &element(7, &floats));
    assert_eq!(read_matlab(&file(&[single]), EVERY_100_US), Ok(expected));
    // MATLAB stores doubles that are small whole numbers in fewer octets, and few of them in the tag.
    let counts = array(6, 0, &[4, 1], b"power", &small(2, &[7, 0, 9, 255]));
    let expected = trace(Duration::from_micros(100), &[7.0, 0.0, 9.0, 255.0]);
    assert_eq!(read_matlab(&file(&[counts]), EVERY_100_US), Ok(expected));
}

#[test]
fn big_endian_files_are_read() {
    let mut octets = file(&[]);
    octets[124..].copy_from_slice(&[1, 0, b'M', b'I']);
    let word = |n: u32| n.to_be_bytes().to_vec();
    let values: Vec<u8> = VALUES
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    let content = [
        word(6),
        word(8),
        vec![0, 0, 0, 6, 0, 0, 0, 0],
        word(5),
        word(8),
        word(5),
        word(1),
        // A name of one octet, in the tag: its length before its type.
        vec![0, 1, 0, 1, b'P', 0, 0, 0],
        word(9),
        word(40),
        values,
    ]
    .concat();
    octets.extend(
        [
            word(14),
            word(u32::try_from(content.len()).unwrap()),
            content,
        ]
        .concat(),
    );
    let expected = trace(Duration::from_micros(100), &VALUES);
    assert_eq!(read_matlab(&octets, EVERY_100_US), Ok(expected));
}

#[test]
fn each_kind_of_broken_matlab_file_is_told_with_the_remedy() {
    let power = array(6, 0, &[5, 1], b"power", &doubles(&VALUES));
    let of = |values: &[f64]| {
        let count = i32::try_from(values.len()).unwrap();
        file(&[array(6, 0, &[count, 1], b"power", &doubles(values))])
    };
    let good = file(core::slice::from_ref(&power));
    let mut later = good.clone();
    later[..10].copy_from_slice(b"MATLAB 7.3");
    let mut unmarked = good.clone();
    unmarked[126] = b'X';
    let mut cut = good.clone();
    cut.truncate(good.len() - 9);
    let mut damaged = file(&[compressed(&power)]);
    damaged[150] ^= 0xFF;
    for (octets, words) in [
        (later, "7.3 (HDF5)"),
        (b"\x89HDF\r\n\x1a\n".repeat(20), "'-v7'"),
        (unmarked, "level 5"),
        (cut, "cut off"),
        (damaged, "damaged"),
        (file(&[]), "nothing in it"),
        (file(&[power.clone(), power.clone()]), "two vectors"),
        (of(&[1.0, f64::NAN]), "sample 2"),
        (of(&[1.0, 1.0, -1.0]), "sample 3: -1 is negative"),
        (
            file(&[array(6, 0, &[2, 2], b"power", &doubles(&VALUES[..4]))]),
            "`power` (2 x 2)",
        ),
        (
            file(&[array(6, 8, &[5, 1], b"power", &doubles(&VALUES))]),
            "complex",
        ),
        (
            file(&[array(1, 0, &[5, 1], b"cells", &[])]),
            "of no numbers",
        ),
        (
            file(&[array(6, 0, &[6, 1], b"power", &doubles(&VALUES))]),
            "40 octets of values for 6",
        ),
        (
            file(&[array(6, 0, &[5, 1], b"power", &element(99, &[0; 40]))]),
            "unknown type 99",
        ),
        (
            file(&[element(14, &[6, 0, 0, 0, 0xFF, 0xFF, 0, 0, 1, 1, 1, 1])]),
            "damaged",
        ),
    ] {
        let error = read_matlab(&octets, EVERY_100_US).unwrap_err();
        assert!(
            error.starts_with("power.mat:") && error.contains(words),
            "{words}: {error}"
        );
    }
    let untimed = read_matlab(&good, PowerOptions::default()).unwrap_err();
    assert!(untimed.contains("spacing 100us"), "{untimed}");
}

proptest! {
    #[test]
    fn whatever_is_in_a_file_the_answer_is_a_trace_or_an_error(
        octets in proptest::collection::vec(any::<u8>(), 0..400),
        at in 0_usize..400,
        timed in any::<bool>(),
    ) {
        let options = if timed { PowerOptions::default() } else { EVERY_100_US };
        let _ = read(&octets, options);
        let power = array(6, 0, &[5, 1], b"power", &doubles(&VALUES));
        for mut file in [file(core::slice::from_ref(&power)), file(&[compressed(&power)])] {
            let at = at.min(file.len());
            let behind = file.split_off(at);
            file.extend(octets.iter().copied());
            file.extend(behind.into_iter().skip(octets.len()));
            let _ = read_matlab(&file, EVERY_100_US);
        }
    }
}
