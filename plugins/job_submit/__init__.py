"""The bundled job_submit plugin: job_submit/lua hands submissions to a site's job_submit.lua.

Offers `JobSubmitLua`. `desc_fields` names what a script reads and writes of a submission.
"""
