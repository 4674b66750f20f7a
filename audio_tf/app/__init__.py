"""A local web page to try models: sounds in, labels and why out.

`answering`, `drawing` and `samples` know nothing of the page; `page` and
`server` need Gradio, the extra `app`. Nothing here asks another host for
anything, nor tells one.
"""
