//! Pictures of numbers, as SVG.

use maud::{Markup, html};

const WIDTH: usize = 720;
const HEIGHT: usize = 160;

/// A layer of a stacked picture.
pub struct Layer<'a> {
    /// What it shows; also its colour.
    pub name: &'a str,
    /// One number per moment.
    pub values: Vec<usize>,
}

/// Layers on top of each other over time; the newest moment is at the right.
pub fn stacked(layers: &[Layer<'_>], moments: usize, label: &str) -> Markup {
    let shown = layers.first().map_or(0, |layer| layer.values.len());
    let sum = |at: usize| layers.iter().map(|layer| layer.values[at]).sum::<usize>();
    let top = (0..shown).map(sum).max().unwrap_or(0).max(1);
    let moments = moments.max(shown).max(2);
    let x = |at: usize| (at + moments - shown) * WIDTH / (moments - 1);
    let y = |value: usize| HEIGHT - value * (HEIGHT - 4) / top;
    let mut below = vec![0; shown];
    let mut areas = Vec::new();
    for layer in layers {
        let above: Vec<_> = below.iter().zip(&layer.values).map(|(low, value)| low + value).collect();
        if layer.values.iter().any(|value| *value > 0) {
            let there = above.iter().enumerate().map(|(at, value)| format!("{},{}", x(at), y(*value)));
            let back = below.iter().enumerate().rev().map(|(at, value)| format!("{},{}", x(at), y(*value)));
            areas.push((layer.name, there.chain(back).collect::<Vec<_>>().join(" ")));
        }
        below = above;
    }
    html! {
        figure.plot {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
                @for line in 1..4 {
                    line.grid x1="0" x2=(WIDTH) y1=(line * HEIGHT / 4) y2=(line * HEIGHT / 4) {}
                }
                @for (name, points) in &areas {
                    polygon class=(name) points=(points) { title { (name) } }
                }
            }
            span.top { (top) }
            figcaption {
                @for layer in layers {
                    @if let Some(last) = layer.values.last() {
                        span.key { i class={ "dot " (layer.name) } {} (layer.name) " " b { (last) } }
                    }
                }
            }
        }
    }
}

/// One number over time, as bars.
pub fn bars(values: &[u64], moments: usize, label: &str) -> Markup {
    let top = values.iter().copied().max().unwrap_or(0).max(1);
    let width = WIDTH / moments.max(1);
    let free = moments.saturating_sub(values.len());
    let tall = |value: u64| usize::try_from(value * (HEIGHT as u64 - 4) / top).unwrap_or(0);
    html! {
        figure.plot {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
                @for (at, value) in values.iter().enumerate() {
                    @if *value > 0 {
                        rect.Succeeded x=((at + free) * width) y=(HEIGHT - tall(*value)) width=(width.max(1)) height=(tall(*value)) {}
                    }
                }
            }
            span.top { (top) }
            figcaption { span.key { (label) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_lie_on_each_other() {
        let layers =
            [Layer { name: "Ready", values: vec![0, 2] }, Layer { name: "Running", values: vec![2, 2] }];
        let drawn = stacked(&layers, 2, "queue").into_string();
        assert!(drawn.contains("points=\"0,160 720,82 720,160 0,160\""), "{drawn}");
        assert!(drawn.contains("points=\"0,82 720,4 720,82 0,160\""), "{drawn}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let drawn = stacked(&[], 10, "queue").into_string() + &bars(&[], 10, "ended").into_string();
        assert!(!drawn.contains("polygon") && !drawn.contains("rect"), "{drawn}");
    }
}
