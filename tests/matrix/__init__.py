"""Every kind of outcome with every measure, design and source of C, against what uncensored data give."""
