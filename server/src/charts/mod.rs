//! Charts as inline SVG.
