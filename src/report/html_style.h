/// The style sheet of report.html. The colour variables are the ones that inline_svg.h puts into the charts.
#pragma once

namespace cohort::report {

inline constexpr const char* kHtmlStyle = R"css(
:root {
  color-scheme: light dark;
  --paper: #ffffff; --page: #f6f8fa; --ink: #1f2328; --muted: #59636e; --line: #d1d9e0; --accent: #0072b2;
  --axis: #8b949e; --grid: #e6e8eb; --reference: #57606a; --good: #1a7f37; --bad: #cf222e; --mark: #fff8c5;
  --series-0: #0072b2; --series-1: #d55e00; --series-2: #009e73; --series-3: #cc79a7; --series-4: #e69f00;
  --series-5: #56b4e9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #161b22; --page: #0d1117; --ink: #e6edf3; --muted: #9198a1; --line: #30363d; --accent: #58a6ff;
    --axis: #6e7681; --grid: #262c34; --reference: #9198a1; --good: #3fb950; --bad: #f85149; --mark: #3a2f0b;
    --series-0: #4ba3e3; --series-1: #f0883e; --series-2: #2fc08f; --series-3: #e39ac4; --series-4: #f2b93b;
    --series-5: #8ccbf2;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
       font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 12px; }
header p { margin: 0 0 20px; overflow-wrap: anywhere; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; margin: 18px 0; }
a { color: var(--accent); }
.muted { color: var(--muted); font-weight: normal; }
.status { display: inline-block; padding: 1px 10px; border-radius: 99px; border: 1px solid var(--good); color: var(--good); }
.status.failed { border-color: var(--bad); color: var(--bad); }
.warning { background: var(--mark); border: 1px solid var(--line); border-radius: 6px; padding: 8px 12px; margin: 0 0 12px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 0; }
.tiles div { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.tiles dt { color: var(--muted); font-size: 13px; }
.tiles dd { margin: 0; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 5px 18px 5px 0; vertical-align: top; border-bottom: 1px solid var(--grid); }
tr:last-child > th, tr:last-child > td { border-bottom: 0; }
.names th { color: var(--muted); font-weight: normal; white-space: nowrap; }
.names td, .files td { overflow-wrap: anywhere; }
.runs td { overflow-wrap: break-word; min-width: 8em; }
.code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 13px; }
.overridden th, .overridden td { background: var(--mark); color: var(--ink); }
.metrics thead th { color: var(--muted); font-weight: normal; font-size: 13px; }
.metrics th:not(:first-child), .number { text-align: right; font-variant-numeric: tabular-nums; }
.metrics .overall th, .metrics .overall td { font-weight: 600; border-top: 2px solid var(--line); }
.metrics tbody th { font-weight: normal; }
figure { margin: 0 0 22px; }
figure:last-child { margin-bottom: 0; }
figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit; }
.videos { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 14px; }
.videos figure { margin: 0; }
video { width: 100%; border-radius: 6px; background: #000000; }
iframe.episodes { width: 100%; height: 520px; border: 0; border-radius: 6px; }
figcaption { color: var(--muted); font-size: 13px; margin-top: 4px; }
summary { cursor: pointer; color: var(--muted); }
details[open] > summary { margin-bottom: 10px; }
pre { margin: 0; padding: 12px; background: var(--page); border-radius: 6px; overflow-x: auto; }
@media print { body { background: #ffffff; } section { break-inside: avoid; } }
)css";

}  // namespace cohort::report
