/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every page has: head, style, sections.
 */
#include "agent/report/page.h"

/* Colours are those of the figures (svg_style). */
static const char page_style[] =
	"*{box-sizing:border-box}"
	"html{scroll-behavior:smooth}"
	"body{margin:0;background:var(--bg);color:var(--ink);"
	"font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
	"header,main,footer{max-width:64rem;margin:0 auto;padding:0 1.25rem}"
	"header{padding-top:2rem}"
	"h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}"
	"h2{font-size:1.2rem;margin:0 0 .5rem}h3{font-size:1rem;margin:1.25rem 0 .35rem}"
	"section{margin:1.5rem 0;padding-top:1.25rem;border-top:1px solid var(--grid)}"
	"p{margin:.4rem 0;max-width:48rem}.soft,.defs,caption,figcaption{color:var(--soft)}"
	".defs{font-size:.85rem}a{color:var(--link)}a.term{text-decoration-style:dotted;"
	"text-underline-offset:.2em}th a.term{color:inherit}"
	"nav{display:flex;flex-wrap:wrap;gap:.15rem 1rem;margin:1rem 0 0;font-size:.9rem}"
	".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.75rem;"
	"margin:1.25rem 0 0}"
	".card{background:var(--panel);border:1px solid var(--grid);border-radius:.4rem;"
	"padding:.6rem .8rem}"
	".card b{display:block;font-size:1.25rem;line-height:1.3;overflow-wrap:anywhere}"
	".card span{font-size:.85rem;color:var(--soft)}"
	".good{color:var(--good)}.bad{color:var(--bad)}"
	".box{border-left:4px solid var(--edge);background:var(--panel);padding:.6rem .9rem;"
	"margin:.75rem 0}.box p{margin:.2rem 0}.box.good{border-color:var(--good)}"
	".box.bad{border-color:var(--bad)}.box.good,.box.bad{color:inherit}"
	".scroll{overflow-x:auto;margin:.6rem 0}"
	"table{border-collapse:collapse;font-size:.9rem}"
	"caption{text-align:left;font-size:.85rem;padding-bottom:.25rem}"
	"th,td{padding:.22rem .8rem .22rem 0;text-align:left;vertical-align:top;"
	"border-bottom:1px solid var(--grid)}"
	"th{font-weight:600}th.n{white-space:normal}thead "
	"th{border-bottom-color:var(--edge);vertical-align:bottom}"
	".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	"tbody th{font-weight:400;color:var(--soft)}tr.sum>*{border-top:1px solid var(--edge);"
	"font-weight:600;color:inherit}"
	".mono{font:.85rem/1.5 ui-monospace,'DejaVu Sans Mono',Consolas,monospace;"
	"overflow-wrap:anywhere}.wrap{overflow-wrap:anywhere}td.wrap{min-width:8rem}.kind{white-"
	"space:nowrap}"
	"figure{margin:.75rem 0;overflow-x:auto}svg.fig{display:block;width:100%;"
	"min-width:44rem;height:auto}svg.defs{position:absolute;width:0;height:0}"
	"figcaption{font-size:.85rem;max-width:48rem;margin-top:.25rem}"
	"details{margin:.6rem 0}summary{cursor:pointer;color:var(--link);font-size:.9rem}"
	"dl{margin:0}dt{font-weight:600;margin-top:.6rem;scroll-margin-top:1rem}"
	"dd{margin:0;max-width:48rem}:target{background:var(--panel);"
	"outline:2px solid var(--s1);outline-offset:2px}"
	"bdi{unicode-bidi:isolate}footer{color:var(--soft);font-size:.85rem;padding-bottom:2rem}"
	"@media print{@page{margin:14mm}body{font-size:10pt}header,main,footer{max-width:none;"
	"padding:0}nav{display:none}section{break-inside:auto}figure,.card,.box,tr,dt,dd{"
	"break-inside:avoid}h2,h3,caption{break-after:avoid}dt{break-after:avoid}"
	"figure,.scroll{overflow:visible}svg.fig{min-width:0}a{color:inherit;"
	"text-decoration:none}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
	"details::details-content{content-visibility:visible;block-size:auto}"
	"summary{color:var(--soft)}table{font-size:8pt}th,td{padding-right:.5rem}}";

void page_begin(struct doc *d, const char *title, const char *of)
{
	doc_put(d,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"generator\" content=\"ramseal " RAMSEAL_VERSION "\">\n"
		"<link rel=\"icon\" href=\"data:,\">\n<title>");
	doc_put(d, title);
	doc_put(d, of ? " of " : "");
	doc_text_cut(d, of, 100);
	doc_printf(d, "</title>\n<style>%s\n%s</style>\n</head>\n<body>\n", svg_style, page_style);
	doc_put(d, "<svg class=\"defs\" aria-hidden=\"true\">");
	svg_patterns(d);
	doc_put(d, "</svg>\n");
}

void page_end(struct doc *d)
{
	doc_put(d, "</main>\n<footer><p>Made by ramseal " RAMSEAL_VERSION
		   ". This page holds everything it shows: it loads nothing and runs "
		   "nothing.</p></footer>\n</body>\n</html>\n");
}

void page_section(struct doc *d, const char *id, const char *title)
{
	doc_printf(d, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

void page_section_end(struct doc *d)
{
	doc_put(d, "</section>\n");
}
