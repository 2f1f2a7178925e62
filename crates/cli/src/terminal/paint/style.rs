//! A style, and its control sequence at each depth of colour. Pure.

use super::depth::Depth;
use std::fmt::Write;

/// A colour, whatever the terminal can show: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Of the text.
    pub fg: Option<Rgb>,
    /// Behind it.
    pub bg: Option<Rgb>,
    /// Bold.
    pub bold: bool,
    /// Quiet.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Struck through.
    pub struck: bool,
    /// Colours exchanged.
    pub reverse: bool,
}

impl Style {
    /// As the terminal shows text anyway.
    pub const PLAIN: Self = Self {
        fg: None,
        bg: None,
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        struck: false,
        reverse: false,
    };

    /// With this colour.
    pub const fn fg(self, color: Rgb) -> Self {
        Self { fg: Some(color), ..self }
    }

    /// Bold.
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Italic.
    pub const fn italic(self) -> Self {
        Self { italic: true, ..self }
    }

    /// Underlined.
    pub const fn underline(self) -> Self {
        Self { underline: true, ..self }
    }

    /// Struck through.
    pub const fn struck(self) -> Self {
        Self { struck: true, ..self }
    }

    /// This style laid over another one: its colours win, attributes add up.
    pub fn over(self, below: Self) -> Self {
        Self {
            fg: self.fg.or(below.fg),
            bg: self.bg.or(below.bg),
            bold: self.bold || below.bold,
            dim: self.dim || below.dim,
            italic: self.italic || below.italic,
            underline: self.underline || below.underline,
            struck: self.struck || below.struck,
            reverse: self.reverse || below.reverse,
        }
    }

    /// The sequence that begins it, from plain text; empty where it is plain at this depth.
    pub fn begin(self, depth: Depth) -> String {
        let mut codes = String::new();
        let attributes = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underline, "4"),
            (self.reverse, "7"),
            (self.struck, "9"),
        ];
        for (on, code) in attributes {
            if on {
                push(&mut codes, code);
            }
        }
        if let Some(color) = self.fg {
            push(&mut codes, &code(color, depth, false));
        }
        if let Some(color) = self.bg {
            push(&mut codes, &code(color, depth, true));
        }
        if codes.is_empty() { codes } else { format!("\x1b[{codes}m") }
    }
}

fn push(codes: &mut String, code: &str) {
    if code.is_empty() {
        return;
    }
    if !codes.is_empty() {
        codes.push(';');
    }
    codes.push_str(code);
}

fn code(color: Rgb, depth: Depth, behind: bool) -> String {
    let mut code = String::new();
    let (layer, shift) = if behind { ("48", 10) } else { ("38", 0) };
    // Writing to a string does not fail.
    let _ = match (color, depth) {
        (_, Depth::NoColor) => Ok(()),
        (Rgb(r, g, b), Depth::True) => write!(code, "{layer};2;{r};{g};{b}"),
        (Rgb(r, g, b), Depth::Indexed) => write!(code, "{layer};5;{}", indexed(r, g, b)),
        (Rgb(r, g, b), Depth::Basic) => write!(code, "{}", basic_code(nearest_basic(r, g, b)) + shift),
    };
    code
}

fn basic_code(n: u8) -> u8 {
    let n = n % 16;
    if n < 8 { 30 + n } else { 82 + n }
}

/// The nearest of the 6×6×6 cube and the grey ramp.
fn indexed(r: u8, g: u8, b: u8) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |v: u8| (0..6_u8).min_by_key(|n| STEPS[usize::from(*n)].abs_diff(v)).unwrap_or(0);
    let (cr, cg, cb) = (step(r), step(g), step(b));
    let cube = (STEPS[usize::from(cr)], STEPS[usize::from(cg)], STEPS[usize::from(cb)]);
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let grey = u8::try_from((mean.saturating_sub(3) / 10).min(23)).unwrap_or(23);
    let shade = 8 + 10 * grey;
    if distance((r, g, b), (shade, shade, shade)) < distance((r, g, b), cube) {
        232 + grey
    } else {
        16 + 36 * cr + 6 * cg + cb
    }
}

fn distance(a: (u8, u8, u8), b: (u8, u8, u8)) -> u32 {
    let square = |x: u8, y: u8| u32::from(x.abs_diff(y)).pow(2);
    square(a.0, b.0) + square(a.1, b.1) + square(a.2, b.2)
}

fn nearest_basic(r: u8, g: u8, b: u8) -> u8 {
    const BASIC: [(u8, u8, u8); 16] = [
        (0, 0, 0),
        (170, 0, 0),
        (0, 170, 0),
        (170, 110, 0),
        (0, 0, 170),
        (170, 0, 170),
        (0, 170, 170),
        (170, 170, 170),
        (85, 85, 85),
        (255, 85, 85),
        (85, 255, 85),
        (255, 255, 85),
        (85, 85, 255),
        (255, 85, 255),
        (85, 255, 255),
        (255, 255, 255),
    ];
    (0..16_u8).min_by_key(|n| distance((r, g, b), BASIC[usize::from(*n)])).unwrap_or(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_told_as_well_as_the_terminal_can_show_it() {
        let style = Style::PLAIN.fg(Rgb(255, 85, 80)).bold();
        assert_eq!(style.begin(Depth::True), "\x1b[1;38;2;255;85;80m");
        assert_eq!(style.begin(Depth::Indexed), "\x1b[1;38;5;203m");
        assert_eq!(style.begin(Depth::Basic), "\x1b[1;91m");
        assert_eq!(style.begin(Depth::NoColor), "\x1b[1m");
        assert_eq!(Style::PLAIN.begin(Depth::True), "");
        let behind = Style { bg: Some(Rgb(8, 8, 8)), ..Style::PLAIN };
        assert_eq!(
            (behind.begin(Depth::Indexed), behind.begin(Depth::Basic)),
            ("\x1b[48;5;232m".into(), "\x1b[40m".into())
        );
    }

    #[test]
    fn a_style_over_another_keeps_what_it_does_not_name() {
        let link = Style::PLAIN.underline();
        let heading = Style::PLAIN.bold().fg(Rgb(0, 0, 170));
        assert_eq!(link.over(heading), Style::PLAIN.bold().underline().fg(Rgb(0, 0, 170)));
    }
}
