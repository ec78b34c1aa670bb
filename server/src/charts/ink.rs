//! What a mark is drawn in. plotters knows only colours, so each ink, stroke and anchor travels through it as a
//! sentinel colour and is turned into a class afterwards.

use plotters::style::RGBColor;

/// A colour of the style sheet, by its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Ink {
    Text,
    Mute,
    Grid,
    Axis,
    Paper,
    Base,
    Blue,
    Worse,
    Better,
    Doubt,
    Void,
    WorseText,
    BetterText,
    DoubtText,
    Saturated,
    Forbidden,
    Band,
}

impl Ink {
    const ALL: [Self; 17] = [
        Self::Text,
        Self::Mute,
        Self::Grid,
        Self::Axis,
        Self::Paper,
        Self::Base,
        Self::Blue,
        Self::Worse,
        Self::Better,
        Self::Doubt,
        Self::Void,
        Self::WorseText,
        Self::BetterText,
        Self::DoubtText,
        Self::Saturated,
        Self::Forbidden,
        Self::Band,
    ];

    fn class(self) -> &'static str {
        match self {
            Self::Text => "i-text",
            Self::Mute => "i-mute",
            Self::Grid => "i-grid",
            Self::Axis => "i-axis",
            Self::Paper => "i-paper",
            Self::Base => "i-base",
            Self::Blue => "i-blue",
            Self::Worse => "i-worse",
            Self::Better => "i-better",
            Self::Doubt => "i-doubt",
            Self::Void => "i-void",
            Self::WorseText => "i-worse-text",
            Self::BetterText => "i-better-text",
            Self::DoubtText => "i-doubt-text",
            Self::Saturated => "i-saturated",
            Self::Forbidden => "i-forbidden",
            Self::Band => "i-band",
        }
    }
}

/// How a line is stroked, or a text set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stroke {
    Solid,
    Dash,
    Dot,
    /// Fine dots of a rule across the plot.
    Rule,
    /// Text of the smaller size.
    Small,
}

impl Stroke {
    const ALL: [Self; 5] = [Self::Solid, Self::Dash, Self::Dot, Self::Rule, Self::Small];

    fn class(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dash => " dash",
            Self::Dot => " dot",
            Self::Rule => " rule",
            Self::Small => " small",
        }
    }
}

/// The role of a whole series: it decides between line ink and text ink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A single run, no verdict.
    Plain,
    Baseline,
    Worse,
    Better,
    Doubt,
    Void,
}

impl Tone {
    pub(super) fn ink(self) -> Ink {
        match self {
            Self::Plain => Ink::Blue,
            Self::Baseline => Ink::Base,
            Self::Worse => Ink::Worse,
            Self::Better => Ink::Better,
            Self::Doubt => Ink::Doubt,
            Self::Void => Ink::Void,
        }
    }

    pub(super) fn text(self) -> Ink {
        match self {
            Self::Plain => Ink::Text,
            Self::Baseline | Self::Void => Ink::Mute,
            Self::Worse => Ink::WorseText,
            Self::Better => Ink::BetterText,
            Self::Doubt => Ink::DoubtText,
        }
    }
}

/// The colour that stands for ink, stroke and anchor (0: none) on the way through plotters.
pub(super) fn sentinel(ink: Ink, stroke: Stroke, anchor: u16) -> RGBColor {
    let [high, low] = anchor.to_be_bytes();
    RGBColor((ink as u8) << 3 | stroke as u8, high, low)
}

/// The classes and the anchor that a sentinel's six hexadecimal digits stand for.
pub(super) fn meaning(hex: &str) -> Option<(String, u16)> {
    let value = u32::from_str_radix(hex, 16).ok()?;
    let style = (value >> 16) as u8;
    let ink = Ink::ALL.get(usize::from(style >> 3))?;
    let stroke = Stroke::ALL.get(usize::from(style & 7))?;
    Some((format!("{}{}", ink.class(), stroke.class()), (value & 0xffff) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentinel_reads_back() {
        for (i, ink) in Ink::ALL.into_iter().enumerate() {
            assert_eq!(ink as usize, i);
            for stroke in Stroke::ALL {
                let RGBColor(r, g, b) = sentinel(ink, stroke, 40_001);
                let (class, anchor) = meaning(&format!("{r:02X}{g:02X}{b:02X}")).unwrap();
                assert_eq!((class, anchor), (format!("{}{}", ink.class(), stroke.class()), 40_001));
            }
        }
        assert_eq!(meaning("FFFFFF"), None);
    }
}
