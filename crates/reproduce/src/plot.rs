//! A figure as SVG: curves with their intervals, bounds, and a legend beside them.
//!
//! Ink and ground are drawn in fixed colours that the page replaces by its own ([`INK`], [`FAINT`],
//! [`GROUND`]); those of the curves do on light and on dark.

use crate::data::FamilyData;
use crate::paper::{Figure, Measure};
use plotters::backend::SVGBackend;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x23);
/// Grid lines.
pub(crate) const FAINT: RGBColor = RGBColor(0xDD, 0xDD, 0xDE);
/// Behind everything.
pub(crate) const GROUND: RGBColor = RGBColor(0xFF, 0xFF, 0xFE);

const SIZE: (u32, u32) = (960, 460);
/// Where the legend begins.
const LEGEND_X: u32 = 690;
const FONT: &str = "sans-serif";

/// Paul Tol's "bright" and "muted" schemes, those that are legible on white and on black.
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
    let mut svg = String::new();
    let drawn = {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        drawing(figure, data, &area).and_then(|()| Ok(area.present()?))
    };
    drawn.map_err(|problem| DrawError {
        figure: figure.id,
        problem: problem.to_string(),
    })?;
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// What is drawn: curves, then bounds.
struct Curve {
    label: &'static str,
    points: Vec<(f64, f64, f64)>,
    style: ShapeStyle,
    /// Which marker; none for a bound.
    marker: Option<usize>,
}

fn curves(figure: &Figure, data: &FamilyData) -> Vec<Curve> {
    let points = |line: usize, measure: &Measure| -> Vec<(f64, f64, f64)> {
        let curve = data.curve(line, measure).into_iter();
        curve
            .filter_map(|(x, s)| Some((x, s.mean?, s.ci95.unwrap_or_default())))
            .collect()
    };
    let lines = data
        .family
        .lines
        .iter()
        .enumerate()
        .map(|(index, line)| Curve {
            label: line.label,
            points: points(index, &figure.measure),
            style: COLOURS[index % COLOURS.len()].stroke_width(2),
            marker: Some(index),
        });
    let bounds = figure
        .bounds
        .iter()
        .enumerate()
        .map(|(index, (name, label))| Curve {
            label,
            points: points(
                0,
                &Measure {
                    name,
                    ..figure.measure
                },
            ),
            style: INK.stroke_width(if index == 0 { 2 } else { 1 }),
            marker: None,
        });
    lines.chain(bounds).collect()
}

fn drawing(figure: &Figure, data: &FamilyData, area: &Area<'_>) -> Outcome {
    area.fill(&GROUND)?;
    let curves = curves(figure, data);
    let (left, right) = area.split_horizontally(LEGEND_X);
    let x_max = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.0))
        .fold(f64::MIN_POSITIVE, f64::max);
    let values = || curves.iter().flat_map(|curve| curve.points.iter());
    let top = values().map(|(_, y, half)| y + half).fold(0.0, f64::max);
    let mut builder = ChartBuilder::on(&left);
    builder
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(72);
    let x = 0.0..x_max * 1.02;
    if figure.logarithmic {
        let positive = values().map(|point| point.1).filter(|y| *y > 0.0);
        let bottom = positive.fold(f64::INFINITY, f64::min);
        let (bottom, top) = if bottom.is_finite() {
            (bottom * 0.7, top.max(bottom) * 1.4)
        } else {
            (1.0, 10.0)
        };
        let mut chart = builder.build_cartesian_2d(x, (bottom..top).log_scale())?;
        fill(figure, data, &mut chart, &curves, bottom)?;
    } else {
        let top = if top > 0.0 { top * 1.05 } else { 1.0 };
        let mut chart = builder.build_cartesian_2d(x, 0.0..top)?;
        fill(figure, data, &mut chart, &curves, 0.0)?;
    }
    legend(&right, &curves)
}

type Chart<'a, 'b, Y> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<plotters::coord::types::RangedCoordf64, Y>>;

fn fill<Y>(
    figure: &Figure,
    data: &FamilyData,
    chart: &mut Chart<'_, '_, Y>,
    curves: &[Curve],
    bottom: f64,
) -> Outcome
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let text = (FONT, 17).into_font().color(&INK);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(text.clone())
        .axis_desc_style(text)
        .x_desc(data.family.x_label)
        .y_desc(figure.measure.caption())
        .x_label_formatter(&|x| number(*x))
        .y_label_formatter(&|y| number(*y))
        .draw()?;
    for curve in curves {
        let path = curve.points.iter().map(|(x, y, _)| (*x, y.max(bottom)));
        chart.draw_series(LineSeries::new(path.clone(), curve.style))?;
        let Some(kind) = curve.marker else { continue };
        let bars = curve.points.iter().filter(|(_, _, half)| *half > 0.0);
        chart.draw_series(bars.map(|(x, y, half)| {
            let low = (y - half).max(bottom);
            ErrorBar::new_vertical(
                *x,
                low,
                y.max(bottom),
                y + half,
                curve.style.stroke_width(1),
                7,
            )
        }))?;
        // Curves can be told apart without colour.
        let (style, solid) = (curve.style, curve.style.filled());
        match kind % 3 {
            0 => chart.draw_series(path.map(|at| Circle::new(at, 4, solid)))?,
            1 => chart.draw_series(path.map(|at| TriangleMarker::new(at, 6, solid)))?,
            _ => chart.draw_series(path.map(|at| Cross::new(at, 4, style)))?,
        };
    }
    Ok(())
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

fn legend(area: &Area<'_>, curves: &[Curve]) -> Outcome {
    let text = (FONT, 17).into_font().color(&INK);
    let mut y = 28;
    for curve in curves {
        area.draw(&PathElement::new([(4, y), (34, y)], curve.style))?;
        if let Some(kind) = curve.marker {
            match kind % 3 {
                0 => area.draw(&Circle::new((19, y), 4, curve.style.filled()))?,
                1 => area.draw(&TriangleMarker::new((19, y), 6, curve.style.filled()))?,
                _ => area.draw(&Cross::new((19, y), 4, curve.style))?,
            }
        }
        area.draw(&Text::new(curve.label, (42, y - 8), text.clone()))?;
        y += 24;
    }
    Ok(())
}
