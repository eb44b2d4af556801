//! A figure as SVG: curves with their intervals, bounds, and a legend below them.
//!
//! Ink and ground are drawn in fixed colours that the page replaces by its own ([`INK`], [`FAINT`],
//! [`GROUND`]); the colours of the curves are legible on light and on dark.

use crate::data::{CurvePoint, Data, FamilyData};
use crate::figure::Figure;
use crate::graph::Graph;
use crate::measure::Measure;
use crate::parameter::SweptParameter;
use core::ops::Range;
use plotters::backend::SVGBackend;
use plotters::coord::combinators::WithKeyPoints;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

/// The colour of text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x23);
/// The colour of grid lines.
pub(crate) const FAINT: RGBColor = RGBColor(0xDD, 0xDD, 0xDE);
/// The colour behind everything.
pub(crate) const GROUND: RGBColor = RGBColor(0xFF, 0xFF, 0xFE);

/// The size of the axes' area; the legend below needs more.
const SIZE: (u32, u32) = (720, 400);
/// The height of a row of the legend.
const ROW: u32 = 27;
/// The place in its column where a label begins.
const LABEL_X: u32 = 48;
const TEXT: u32 = 19;
/// The width allowed for a letter. The widest of the sans-serif faces in use, `DejaVu` Sans, takes 8 for
/// the labels that there are.
const LETTER: u32 = 9;
const FONT: &str = "sans-serif";

/// The colours of Paul Tol's "bright" and "muted" schemes that are legible on white and on black.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0xD5, 0x3E, 0x4F),
    RGBColor(0x80, 0x80, 0x80),
    RGBColor(0x22, 0x77, 0xCC),
    RGBColor(0x11, 0x99, 0x99),
    RGBColor(0x66, 0x99, 0x22),
    RGBColor(0xAA, 0x44, 0xBB),
    RGBColor(0xDD, 0x77, 0x11),
    RGBColor(0x99, 0x66, 0x33),
    RGBColor(0xCC, 0x66, 0x99),
    RGBColor(0x77, 0x77, 0xCC),
];

/// A figure that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {figure}: {problem}")]
pub struct DrawError {
    figure: &'static str,
    problem: String,
}

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The figure as a text of SVG.
pub(crate) fn draw(figure: &Figure, data: &FamilyData) -> Result<String, DrawError> {
    let axes = Axes {
        x_label: data.family.x.axis.caption(),
        y_label: figure.measure.caption(),
        x_logarithmic: data.family.x.axis.is_logarithmic,
        y_logarithmic: figure.logarithmic,
        names: Some(&data.family.x),
    };
    picture(figure.id, &axes, &curves(figure, data))
}

/// Curves that are no family's runs, as a text of SVG.
pub(crate) fn draw_computed(
    id: &'static str,
    graph: &Graph,
    data: &Data,
) -> Result<String, DrawError> {
    let axes = Axes {
        x_label: graph.x.caption(),
        y_label: graph.y.caption(),
        x_logarithmic: graph.x.is_logarithmic,
        y_logarithmic: graph.y.is_logarithmic,
        names: None,
    };
    let traced = (graph.traces)(data);
    let curves = traced.into_iter().enumerate().map(|(index, trace)| {
        let colour = COLOURS[trace.colour.unwrap_or(index) % COLOURS.len()];
        Curve {
            label: trace.label,
            points: trace.samples(),
            style: colour.stroke_width(2),
            marker: if trace.joined {
                Marker::None
            } else {
                Marker::Ring
            },
            joined: trace.joined,
        }
    });
    picture(id, &axes, &curves.collect::<Vec<_>>())
}

/// The properties of the axes.
struct Axes<'a> {
    x_label: String,
    y_label: String,
    x_logarithmic: bool,
    y_logarithmic: bool,
    /// The parameter whose values may be names.
    names: Option<&'a SweptParameter>,
}

impl Axes<'_> {
    fn name(&self, x: f64) -> Option<&'static str> {
        self.names.and_then(|parameter| parameter.label_at(x))
    }
}

fn picture(id: &'static str, axes: &Axes<'_>, curves: &[Curve]) -> Result<String, DrawError> {
    let mut svg = String::new();
    let drawn = {
        let size = (SIZE.0, SIZE.1 + ROW * rows(curves) + ROW / 2);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        drawing(axes, curves, &area).and_then(|()| Ok(area.present()?))
    };
    drawn.map_err(|problem| DrawError {
        figure: id,
        problem: problem.to_string(),
    })?;
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A drawn curve: first come the runs' curves, then bounds, then points of other sources.
struct Curve {
    label: &'static str,
    points: Vec<CurvePoint>,
    style: ShapeStyle,
    marker: Marker,
    joined: bool,
}

#[derive(Clone, Copy)]
enum Marker {
    None,
    /// A shape by the curve's number, so that curves can be told apart without colour.
    Solid(usize),
    /// A ring, which stays visible around the markers of our runs where both agree.
    Ring,
}

fn curves(figure: &Figure, data: &FamilyData) -> Vec<Curve> {
    let colour = |index: usize| COLOURS[index % COLOURS.len()];
    let lines = data.family.lines.iter().enumerate();
    let lines = lines.map(|(index, line)| Curve {
        label: line.label,
        points: data.curve(index, &figure.measure),
        style: colour(index).stroke_width(2),
        marker: Marker::Solid(index),
        joined: true,
    });
    let bounds = figure.bounds.iter().enumerate();
    let bounds = bounds.map(|(index, (name, label))| Curve {
        label,
        points: data.curve(
            0,
            &Measure {
                name,
                ..figure.measure
            },
        ),
        style: INK.stroke_width(if index == 0 { 2 } else { 1 }),
        marker: Marker::None,
        joined: true,
    });
    let overlays = figure.overlays.iter().map(|overlay| {
        let mut lines = data.family.lines.iter();
        let like = lines.position(|line| Some(line.label) == overlay.like);
        Curve {
            label: overlay.label,
            points: overlay.points(&figure.measure),
            style: like.map_or(INK, colour).stroke_width(2),
            marker: if overlay.joined {
                Marker::None
            } else {
                Marker::Ring
            },
            joined: overlay.joined,
        }
    });
    lines.chain(bounds).chain(overlays).collect()
}

fn drawing(axes: &Axes<'_>, curves: &[Curve], area: &Area<'_>) -> Outcome {
    area.fill(&GROUND)?;
    let (above, below) = area.split_vertically(SIZE.1);
    let mut builder = ChartBuilder::on(&above);
    builder
        .margin(12)
        // Room for half of the last label on the axis below.
        .margin_right(26)
        .x_label_area_size(50)
        .y_label_area_size(86);
    let samples = || curves.iter().flat_map(|curve| curve.points.iter());
    let (x_low, x_high) = positive(samples().map(|sample| sample.x));
    let (y_low, y_high) = positive(samples().map(|sample| sample.value));
    let top = samples()
        .filter_map(|sample| sample.high)
        .fold(y_high, f64::max);
    let frame = Frame {
        axes,
        curves,
        x_low: if axes.name(0.0).is_some() {
            -NAME_ROOM
        } else if axes.x_logarithmic {
            x_low / 1.1
        } else {
            0.0
        },
        y_low: if axes.y_logarithmic { y_low * 0.7 } else { 0.0 },
    };
    let x_end = match axes.name(x_high) {
        Some(_) => x_high + NAME_ROOM,
        None => x_high * 1.02,
    };
    let x = frame.x_low..x_end;
    let y = frame.y_low..top * if axes.y_logarithmic { 1.4 } else { 1.05 };
    match (axes.x_logarithmic, axes.y_logarithmic) {
        (false, false) => frame.fill(&mut builder.build_cartesian_2d(x, y)?)?,
        (false, true) => frame.fill(&mut builder.build_cartesian_2d(x, decades(y))?)?,
        (true, false) => frame.fill(&mut builder.build_cartesian_2d(decades(x), y)?)?,
        (true, true) => {
            frame.fill(&mut builder.build_cartesian_2d(decades(x), decades(y))?)?;
        }
    }
    legend(&below, curves)
}

/// The room beside the first and the last name of an axis of names, in steps from name to name.
const NAME_ROOM: f64 = 0.5;

type Decades = WithKeyPoints<LogCoord<f64>>;

/// More powers of ten than a figure spans.
const MARKED: u8 = 40;

/// A logarithmic axis with marks at powers of ten, and between them where those are few.
fn decades(range: Range<f64>) -> Decades {
    let within: &[f64] = match (range.end / range.start).log10() {
        // A third of them is far enough apart for a label on either axis.
        span if span >= 3.0 => &[1.0],
        span if span >= 0.7 => &[1.0, 2.0, 5.0],
        _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
    };
    let first = range.start.log10().floor();
    let marks = (0..=MARKED)
        .map(|decade| 10_f64.powf(first + f64::from(decade)))
        .take_while(|decade| *decade <= range.end)
        .flat_map(|decade| within.iter().map(move |mark| mark * decade))
        .filter(|mark| range.contains(mark))
        .collect();
    range.log_scale().with_key_points(marks)
}

/// The lowest and the highest of the values above 0; 0.1 and 1 if there are none.
fn positive(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = values
        .filter(|value| *value > 0.0)
        .fold(None, |ends, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        });
    ends.unwrap_or((0.1, 1.0))
}

/// The parts of a figure that are drawn between axes of any kind.
struct Frame<'a> {
    axes: &'a Axes<'a>,
    curves: &'a [Curve],
    x_low: f64,
    y_low: f64,
}

type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

impl Frame<'_> {
    fn fill<X, Y>(&self, chart: &mut Chart<'_, '_, X, Y>) -> Outcome
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let text = (FONT, TEXT).into_font().color(&INK);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(FAINT)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .label_style(text.clone())
            .axis_desc_style(text)
            .x_desc(self.axes.x_label.clone())
            .y_desc(self.axes.y_label.clone())
            .x_label_formatter(&|x| match self.axes.name(*x) {
                Some(name) => name.to_owned(),
                None => number(*x),
            })
            .y_label_formatter(&|y| number(*y))
            .draw()?;
        for curve in self.curves {
            self.curve(chart, curve)?;
        }
        Ok(())
    }

    fn curve<X, Y>(&self, chart: &mut Chart<'_, '_, X, Y>, curve: &Curve) -> Outcome
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let at = |sample: &CurvePoint| (sample.x.max(self.x_low), sample.value.max(self.y_low));
        let path = curve.points.iter().map(at);
        if curve.joined {
            chart.draw_series(LineSeries::new(path.clone(), curve.style))?;
        }
        let bars = curve.points.iter().filter_map(|sample| {
            let (low, high) = (sample.low?, sample.high?);
            let (x, y) = at(sample);
            let (thin, low) = (curve.style.stroke_width(1), low.max(self.y_low));
            (high > low).then(|| ErrorBar::new_vertical(x, low, y, high, thin, 7))
        });
        chart.draw_series(bars)?;
        let (style, solid) = (curve.style, curve.style.filled());
        match curve.marker {
            Marker::None => {}
            Marker::Ring => drop(chart.draw_series(path.map(|at| Circle::new(at, 8, style)))?),
            Marker::Solid(kind) => match kind % 3 {
                0 => drop(chart.draw_series(path.map(|at| Circle::new(at, 4, solid)))?),
                1 => drop(chart.draw_series(path.map(|at| TriangleMarker::new(at, 6, solid)))?),
                _ => drop(chart.draw_series(path.map(|at| Cross::new(at, 4, style)))?),
            },
        }
        Ok(())
    }
}

/// `1e-5` rather than a row of zeros, and no trailing ones.
fn number(value: f64) -> String {
    let size = value.abs();
    if size < 1e-12 {
        "0".to_owned()
    } else if size < 1e-3 {
        let text = format!("{value:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        format!("{digits}e{exponent}")
    } else {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// The number of columns for which the legend has room.
fn columns(curves: &[Curve]) -> u32 {
    let letters = curves.iter().map(|curve| curve.label.chars().count());
    let longest = u32::try_from(letters.max().unwrap_or(0)).unwrap_or(u32::MAX);
    let width = longest.saturating_mul(LETTER).saturating_add(LABEL_X);
    (SIZE.0 / width.max(1)).clamp(1, 3)
}

/// The number of rows in which the legend then stands.
fn rows(curves: &[Curve]) -> u32 {
    let count = u32::try_from(curves.len()).unwrap_or(u32::MAX);
    count.div_ceil(columns(curves))
}

fn legend(area: &Area<'_>, curves: &[Curve]) -> Outcome {
    let text = (FONT, TEXT).into_font().color(&INK);
    let columns = columns(curves);
    let rows = rows(curves).max(1);
    for (index, curve) in (0..).zip(curves) {
        let x = i32::try_from(16 + index / rows * (SIZE.0 / columns))?;
        let y = i32::try_from(ROW / 2 + index % rows * ROW)?;
        if curve.joined {
            area.draw(&PathElement::new([(x, y), (x + 30, y)], curve.style))?;
        }
        let (style, solid) = (curve.style, curve.style.filled());
        let middle = (x + 15, y);
        match curve.marker {
            Marker::None => {}
            Marker::Ring => area.draw(&Circle::new(middle, 8, style))?,
            Marker::Solid(kind) => match kind % 3 {
                0 => area.draw(&Circle::new(middle, 4, solid))?,
                1 => area.draw(&TriangleMarker::new(middle, 6, solid))?,
                _ => area.draw(&Cross::new(middle, 4, style))?,
            },
        }
        area.draw(&Text::new(curve.label, (x + 36, y - 8), text.clone()))?;
    }
    Ok(())
}
